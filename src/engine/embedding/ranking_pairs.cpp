#include "engine/embedding/ranking_pairs.h"

#include <llama.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace slipstream {
namespace {

// A query may take at most this part of what fits: a half.
constexpr std::size_t kQueryShare = 2;

// Of the template that llama.cpp calls "rerank".
constexpr std::string_view kQueryPlace = "{query}";
constexpr std::string_view kTextPlace = "{document}";

}  // namespace

std::vector<Token> RankingPairs::join(const std::vector<Token>& query,
                                      const std::vector<Token>& text) const {
  const llama_vocab* vocab = model_.vocabulary().get();
  Token end = llama_vocab_eos(vocab);
  if (end == LLAMA_TOKEN_NULL) end = llama_vocab_sep(vocab);
  std::vector<Token> tokens;
  const auto add = [&tokens](bool is_added, Token token) {
    if (is_added && token != LLAMA_TOKEN_NULL) tokens.push_back(token);
  };
  add(llama_vocab_get_add_bos(vocab), llama_vocab_bos(vocab));
  tokens.append_range(query);
  add(llama_vocab_get_add_eos(vocab), end);
  add(llama_vocab_get_add_sep(vocab), llama_vocab_sep(vocab));
  tokens.append_range(text);
  add(llama_vocab_get_add_eos(vocab), end);
  return tokens;
}

MarkedText RankingPairs::fill_template(std::string_view query, std::string_view text) const {
  MarkedText filled;
  const std::string_view whole = template_;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t brace = std::min(whole.find('{', at), whole.size());
    filled.append(whole.substr(at, brace - at), Origin::kTemplate);
    const std::string_view rest = whole.substr(brace);
    if (rest.starts_with(kQueryPlace)) {
      filled.append(query, Origin::kClient);
      at = brace + kQueryPlace.size();
    } else if (rest.starts_with(kTextPlace)) {
      filled.append(text, Origin::kClient);
      at = brace + kTextPlace.size();
    } else {
      filled.append(rest.substr(0, 1), Origin::kTemplate);
      at = brace + 1;
    }
  }
  return filled;
}

Result<std::vector<Token>> RankingPairs::by_template(std::string_view query,
                                                     std::string_view text) const {
  return model_.vocabulary().tokenize_chat(fill_template(query, text),
                                           std::numeric_limits<std::size_t>::max());
}

Result<std::vector<Token>> RankingPairs::whole(std::string_view query,
                                               std::string_view text) const {
  if (!template_.empty()) return by_template(query, text);
  const Result<std::vector<Token>> asked = model_.vocabulary().tokenize(query, false, false);
  if (!asked) return asked;
  const Result<std::vector<Token>> read = model_.vocabulary().tokenize(text, false, false);
  if (!read) return read;
  return join(*asked, *read);
}

Result<std::vector<Token>> RankingPairs::cut(std::string_view query, std::string_view text) const {
  if (!template_.empty()) return cut_by_template(query, text);
  const auto n_max = static_cast<std::size_t>(model_.n_tokens_max());
  const auto tokens_of = [&](std::string_view part) {
    return model_.vocabulary().tokenize(beginning_of(part, model_.n_tokens_max()), false, false);
  };
  Result<std::vector<Token>> asked = tokens_of(query);
  if (!asked) return asked;
  asked->resize(std::min(asked->size(), n_max / kQueryShare));
  Result<std::vector<Token>> read = tokens_of(text);
  if (!read) return read;
  const std::size_t n_around = join({}, {}).size();  // what is neither
  const std::size_t n_left = n_max - std::min(n_max, n_around + asked->size());
  read->resize(std::min(read->size(), n_left));
  return join(*asked, *read);
}

Result<std::vector<Token>> RankingPairs::cut_by_template(std::string_view query,
                                                         std::string_view text) const {
  const int n_max = model_.n_tokens_max();
  std::string kept = beginning_of(text, n_max);
  const std::string asked = beginning_of(query, n_max);
  while (true) {  // the text is cut, not what the template says behind it
    Result<std::vector<Token>> tokens = by_template(asked, kept);
    if (!tokens || std::cmp_less_equal(tokens->size(), n_max)) return tokens;
    if (kept.empty()) return fail(Code::kInvalidArgument, "the query is too long for the reranker");
    kept = beginning_of(std::string_view(kept).substr(0, kept.size() / 2), n_max);
  }
}

}  // namespace slipstream
