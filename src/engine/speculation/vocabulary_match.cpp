#include "engine/speculation/vocabulary_match.h"

#include <llama.h>

#include <array>
#include <string_view>

#include "base/format.h"
#include "engine/request.h"

namespace slipstream {
namespace {

struct SpecialToken {
  std::string_view what;
  Token (*of)(const llama_vocab*);
};

constexpr std::array kSpecialTokens = {
    SpecialToken{.what = "begins texts", .of = llama_vocab_bos},
    SpecialToken{.what = "ends texts", .of = llama_vocab_eos},
    SpecialToken{.what = "ends turns", .of = llama_vocab_eot},
};

std::string_view text_of(const llama_vocab* vocab, Token token) {
  const char* text = llama_vocab_get_text(vocab, token);
  return text == nullptr ? "" : text;
}

Result<void> refuse(std::string_view what) {
  return fail(Code::kUnsupported,
              format_text("the draft model has other tokens than the model: {}. It must have the "
                          "same vocabulary, as models of one family have",
                          what));
}

}  // namespace

Result<void> check_same_vocabulary(const llama_vocab* model, const llama_vocab* draft_model) {
  const int n_tokens = llama_vocab_n_tokens(model);
  const int n_drafted = llama_vocab_n_tokens(draft_model);
  if (n_tokens != n_drafted) return refuse(format_text("{} and not {}", n_drafted, n_tokens));
  for (Token token = 0; token < n_tokens; ++token) {
    const std::string_view a = text_of(model, token);
    const std::string_view b = text_of(draft_model, token);
    if (a != b) return refuse(format_text("token {} is '{}' and not '{}'", token, b, a));
  }
  for (const SpecialToken& special : kSpecialTokens) {
    const Token a = special.of(model);
    const Token b = special.of(draft_model);
    if (a != b) {
      return refuse(format_text("the one that {} is {} and not {} (-1: none)", special.what, b, a));
    }
  }
  return {};
}

}  // namespace slipstream
