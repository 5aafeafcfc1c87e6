#include "server/turn/fill_prompt.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/turn/generation.h"

namespace slipstream {
namespace {

// As llama-server has them: what models were trained with has names here, and clients send none.
constexpr std::string_view kRepository = "myproject\n";
constexpr std::string_view kThisFile = "filename\n";
constexpr std::string_view kSnippet = "\n\n--- snippet ---\n\n";

class FillWriter {
 public:
  FillWriter(const ServedModel& model, const FillTokens& marks)
      : vocabulary_(model.engine->vocabulary()),
        n_context_(model.engine->n_context()),
        marks_(marks) {}

  ApiResult<FillPrompt> write(const FillIn& fill, int n_tokens_after) {
    std::vector<Token> place;
    const std::optional<Token> bos = vocabulary_.bos();
    if (vocabulary_.adds_bos() && bos) place.push_back(*bos);
    place.push_back(marks_.prefix);
    if (auto added = add(place, fill.prefix_name, fill.prefix); !added) return wrong(added);
    if (auto added = add(place, "prompt", fill.line); !added) return wrong(added);
    place.push_back(marks_.suffix);
    if (auto added = add(place, fill.suffix_name, fill.suffix); !added) return wrong(added);
    place.push_back(marks_.middle);

    ApiResult<std::vector<Token>> head = named(marks_.repository, kRepository);
    if (!head) return std::unexpected(head.error());
    const ApiResult<std::vector<Token>> this_file = named(marks_.file, kThisFile);
    if (!this_file) return std::unexpected(this_file.error());
    const auto n_used =
        static_cast<std::int64_t>(place.size() + head->size() + this_file->size()) + n_tokens_after;
    const auto chunks = last_that_fit(fill.extra, n_context_ - n_used);
    FillPrompt prompt{.tokens = std::move(*head), .n_dropped = fill.extra.size() - chunks.size()};
    for (const auto& chunk : chunks | std::views::reverse) prompt.tokens.append_range(chunk);
    prompt.tokens.append_range(*this_file);
    prompt.tokens.append_range(place);
    return prompt;
  }

 private:
  static std::unexpected<ApiError> wrong(const ApiResult<void>& result) {
    return std::unexpected(result.error());
  }

  [[nodiscard]] ApiResult<void> add(std::vector<Token>& tokens, std::string_view field,
                                    std::string_view text) const {
    if (text.empty()) return {};
    const std::string param(field);
    if (auto fits = check_length(vocabulary_, param, text, n_context_); !fits) return fits;
    const Result<std::vector<Token>> split = vocabulary_.tokenize(text, false, false);
    if (!split) return refuse(param, split.error().message);
    tokens.append_range(*split);
    return {};
  }

  // Nothing where the vocabulary has no such mark.
  [[nodiscard]] ApiResult<std::vector<Token>> named(std::optional<Token> mark,
                                                    std::string_view name) const {
    std::vector<Token> tokens;
    if (!mark) return tokens;
    tokens.push_back(*mark);
    if (auto added = add(tokens, "input_extra", name); !added) return wrong(added);
    return tokens;
  }

  [[nodiscard]] ApiResult<std::vector<Token>> split(const FillIn::Chunk& chunk) const {
    ApiResult<std::vector<Token>> tokens = named(marks_.file, chunk.filename + "\n");
    if (!tokens) return tokens;
    if (!marks_.file) {
      if (auto added = add(*tokens, "input_extra", kSnippet); !added) return wrong(added);
    }
    if (auto added = add(*tokens, "input_extra", chunk.text); !added) return wrong(added);
    return tokens;
  }

  // The last one comes first. What cannot fit in any case is not even split into tokens.
  [[nodiscard]] std::vector<std::vector<Token>> last_that_fit(
      const std::vector<FillIn::Chunk>& extra, std::int64_t n_room) const {
    std::vector<std::vector<Token>> chunks;
    for (const FillIn::Chunk& chunk : extra | std::views::reverse) {
      ApiResult<std::vector<Token>> tokens = split(chunk);
      if (!tokens || std::cmp_greater(tokens->size(), std::max<std::int64_t>(n_room, 0))) break;
      n_room -= static_cast<std::int64_t>(tokens->size());
      chunks.push_back(std::move(*tokens));
    }
    return chunks;
  }

  const Vocabulary& vocabulary_;
  const int n_context_;
  const FillTokens marks_;
};

}  // namespace

ApiResult<FillPrompt> fill_prompt(const ServedModel& model, const FillIn& fill,
                                  int n_tokens_after) {
  const std::optional<FillTokens> marks = model.engine->vocabulary().fill_tokens();
  if (!marks) {
    return refuse(
        std::string(fill.suffix_name),
        format_text("The model '{}' cannot fill in: its vocabulary has no tokens for what "
                    "is before and after. Models for code have them, such as "
                    "Qwen2.5-Coder",
                    model.name));
  }
  return FillWriter(model, *marks).write(fill, n_tokens_after);
}

}  // namespace slipstream
