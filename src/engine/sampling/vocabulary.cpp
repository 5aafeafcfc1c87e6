#include "engine/sampling/vocabulary.h"

#include <llama.h>

#include <exception>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "base/format.h"
#include "base/limits.h"

namespace slipstream {

static_assert(kLimits.text_bytes_max < std::numeric_limits<std::int32_t>::max() / 2,
              "libllama counts bytes and tokens in 32 bits");

struct Vocabulary::LazyPieces {
  std::once_flag once;
  std::unique_ptr<const TokenPieces> pieces;
};

Vocabulary::Vocabulary(const llama_vocab* vocab, int n_tokens)
    : vocab_(vocab), n_tokens_(n_tokens), pieces_(std::make_unique<LazyPieces>()) {}
Vocabulary::Vocabulary(Vocabulary&& other) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&& other) noexcept = default;
Vocabulary::~Vocabulary() = default;

Result<Vocabulary> Vocabulary::create(const llama_model* model) {
  SLIP_CHECK(model != nullptr, "no model");
  const llama_vocab* vocab = llama_model_get_vocab(model);
  // Every other function of libllama would abort on it.
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
    return fail(Code::kUnsupported, "the model has no vocabulary");
  }
  const int n_tokens = llama_vocab_n_tokens(vocab);
  if (n_tokens <= 0) return fail(Code::kUnsupported, "the model's vocabulary is empty");
  return Vocabulary(vocab, n_tokens);
}

Result<std::vector<Token>> Vocabulary::tokenize(std::string_view text, bool add_special,
                                                bool parse_special) const {
  if (text.size() > kLimits.text_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a text of {} bytes is longer than the {} allowed", text.size(),
                            kLimits.text_bytes_max));
  }
  const auto run = [&](std::vector<Token>& tokens) {
    return llama_tokenize(vocab_, text.data(), static_cast<std::int32_t>(text.size()),
                          tokens.data(), static_cast<std::int32_t>(tokens.size()), add_special,
                          parse_special);
  };
  // Rarely is a token less than a byte; too short a buffer costs tokenizing twice.
  constexpr std::size_t kSpecialTokens = 8;
  std::vector<Token> tokens(text.size() + kSpecialTokens);
  try {
    std::int32_t n = run(tokens);
    if (n < 0 && n != std::numeric_limits<std::int32_t>::min()) {
      tokens.resize(static_cast<std::size_t>(-n));
      n = run(tokens);
    }
    if (n < 0) return fail(Code::kInvalidArgument, "the text has too many tokens to be counted");
    tokens.resize(static_cast<std::size_t>(n));
  } catch (const std::exception& error) {
    return fail(Code::kInvalidArgument,
                format_text("the text could not be split into tokens: {}", error.what()));
  }
  tokens.shrink_to_fit();
  return tokens;
}

std::string Vocabulary::piece(Token token, bool special) const {
  SLIP_CHECK(contains(token), "a token outside of the vocabulary");
  const auto run = [&](std::string& bytes) {
    return llama_token_to_piece(vocab_, token, bytes.data(),
                                static_cast<std::int32_t>(bytes.size()), 0, special);
  };
  std::string bytes(std::string().capacity(), '\0');
  std::int32_t n = run(bytes);
  if (n < 0) {
    bytes.resize(static_cast<std::size_t>(-n));
    n = run(bytes);
  }
  SLIP_CHECK(n >= 0, "libllama asked for a longer buffer twice");
  bytes.resize(static_cast<std::size_t>(n));
  return bytes;
}

std::vector<Token> Vocabulary::special_tokens_in(std::string_view text) const {
  Result<std::vector<Token>> tokens = tokenize(text, false, true);
  if (!tokens) return {};
  std::erase_if(*tokens, [this](Token token) {
    constexpr int kByHand = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED;
    return (llama_vocab_get_attr(vocab_, token) & kByHand) == 0;
  });
  return *std::move(tokens);
}

bool Vocabulary::is_end(Token token) const {
  SLIP_CHECK(contains(token), "a token outside of the vocabulary");
  return llama_vocab_is_eog(vocab_, token);
}

std::optional<Token> Vocabulary::bos() const {
  const Token token = llama_vocab_bos(vocab_);
  return contains(token) ? std::optional(token) : std::nullopt;
}

std::optional<Token> Vocabulary::eos() const {
  const Token token = llama_vocab_eos(vocab_);
  return contains(token) ? std::optional(token) : std::nullopt;
}

const TokenPieces& Vocabulary::pieces() const {
  std::call_once(pieces_->once, [this] {
    std::vector<std::string> pieces;
    std::vector<Token> ends;
    pieces.reserve(static_cast<std::size_t>(n_tokens_));
    for (Token token = 0; token < n_tokens_; ++token) {
      pieces.push_back(piece(token, true));
      if (is_end(token)) ends.push_back(token);
    }
    pieces_->pieces = std::make_unique<const TokenPieces>(std::move(pieces), std::move(ends));
  });
  return *pieces_->pieces;
}

}  // namespace slipstream
