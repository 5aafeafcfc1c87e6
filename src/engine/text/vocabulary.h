// Vocabulary: a model's tokens and their texts, over libllama's llama_vocab.
//
// The model must outlive it. Text goes in as it is: NUL is a byte like any other, and what is not
// UTF-8 is up to the model's tokenizer (libllama's byte-level ones read it as U+FFFD).
//
// Threads: thread-safe (libllama's tokenizing functions are).
// Errors:  kUnsupported for a model without a vocabulary; tokenize(): kInvalidArgument for a text
// that
//          is longer than TextLimits::text_bytes_max or that libllama cannot split.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/text/marked_text.h"
#include "engine/text/special_tokens.h"
#include "engine/text/token_pieces.h"

struct llama_model;
struct llama_vocab;

namespace slipstream {

class Vocabulary {
 public:
  [[nodiscard]] static Result<Vocabulary> create(const llama_model* model);

  Vocabulary(Vocabulary&& other) noexcept;
  Vocabulary& operator=(Vocabulary&& other) noexcept;
  ~Vocabulary();

  // add_special: begin (and end) as the model was trained to. parse_special: read "<|im_end|>" and
  // its like as the one token they name, not as text.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                                    bool parse_special) const;
  // A chat's prompt: control tokens are read in what the template wrote, and nothing that a client
  // wrote becomes one. Begins as the model was trained to, unless the template has. Beyond
  // n_tokens_max tokens it may stop.
  [[nodiscard]] Result<std::vector<Token>> tokenize_chat(const MarkedText& prompt,
                                                         std::size_t n_tokens_max) const;
  // The bytes of a token, maybe part of a character. Those of control tokens only if `special`.
  [[nodiscard]] std::string piece(Token token, bool special) const;

  // The tokens of a text that were added to the vocabulary by hand, such as "<|im_end|>", in order.
  [[nodiscard]] std::vector<Token> special_tokens_in(std::string_view text) const;

  [[nodiscard]] int n_tokens() const { return n_tokens_; }
  [[nodiscard]] bool contains(Token token) const { return token >= 0 && token < n_tokens_; }
  // The model ends its answer, or its turn, with it.
  [[nodiscard]] bool is_end(Token token) const;
  // It steers the model and is no text.
  [[nodiscard]] bool is_control(Token token) const;
  [[nodiscard]] std::optional<Token> bos() const;
  [[nodiscard]] std::optional<Token> eos() const;

  // All pieces, with those of control tokens; made when they are first asked for.
  [[nodiscard]] const TokenPieces& pieces() const;

  [[nodiscard]] const llama_vocab* get() const { return vocab_; }

 private:
  struct LazyPieces;
  struct Splitting;

  Vocabulary(const llama_vocab* vocab, int n_tokens);

  [[nodiscard]] Result<std::vector<Token>> split(std::string_view text,
                                                 const Splitting& splitting) const;
  // A control token's name as text, in tokens that are none.
  [[nodiscard]] std::vector<Token> spelled(Token token) const;

  const llama_vocab* vocab_;
  int n_tokens_;
  std::unique_ptr<LazyPieces> pieces_;
  SpecialTokens special_;
};

// A token stands for at most so many bytes of a text: one that has more of them than the context
// has tokens need not be split to be too long.
[[nodiscard]] std::size_t token_bytes_max(const Vocabulary& vocabulary);

}  // namespace slipstream
