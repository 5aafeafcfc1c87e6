// Vocabulary: a model's tokens and their texts, over libllama's llama_vocab.
//
// The model must outlive it. Text is passed on unchanged: NUL is a byte like any other, and invalid
// UTF-8 is left to the model's tokenizer (libllama's byte-level ones read it as U+FFFD).
//
// Threads: thread-safe (libllama's tokenizing functions are).
// Errors:  kUnsupported for a model without a vocabulary; tokenize(): kInvalidArgument for a text
//          longer than TextLimits::text_bytes_max or one that libllama cannot split.
#pragma once

#include <memory>
#include <optional>
#include <span>
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

// Tokens between which a model fills a place (FIM).
struct FillTokens {
  Token prefix;
  Token suffix;
  Token middle;
  std::optional<Token> repository = {};  // before the name of a repository
  std::optional<Token> file = {};        // before the name of a file
};

class Vocabulary {
 public:
  [[nodiscard]] static Result<Vocabulary> create(const llama_model* model);

  Vocabulary(Vocabulary&& other) noexcept;
  Vocabulary& operator=(Vocabulary&& other) noexcept;
  ~Vocabulary();

  // add_special: add the tokens that begin (and end) texts in the model's training. parse_special:
  // read names such as "<|im_end|>" as the token that they name, not as text.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                                    bool parse_special) const;
  // A chat's prompt. Control tokens are read only in what the template wrote, never in what a
  // client wrote. Adds the token that begins texts unless the template has. May stop after
  // n_tokens_max tokens.
  [[nodiscard]] Result<std::vector<Token>> tokenize_chat(const MarkedText& prompt,
                                                         std::size_t n_tokens_max) const;
  // The same prompt in parts, between which there is something else. A part is split by itself.
  [[nodiscard]] Result<std::vector<std::vector<Token>>> tokenize_chat(
      std::span<const MarkedText> parts, std::size_t n_tokens_max) const;
  // The bytes of a token, possibly part of a character; none for control tokens unless `special`.
  [[nodiscard]] std::string piece(Token token, bool special) const;

  // The tokens of a text that were added to the vocabulary by hand, such as "<|im_end|>", in order.
  [[nodiscard]] std::vector<Token> special_tokens_in(std::string_view text) const;

  [[nodiscard]] int n_tokens() const { return n_tokens_; }
  [[nodiscard]] bool contains(Token token) const { return token >= 0 && token < n_tokens_; }
  // Whether the model ends its answer, or its turn, with it.
  [[nodiscard]] bool is_end(Token token) const;
  // Whether it steers the model and is not text.
  [[nodiscard]] bool is_control(Token token) const;
  [[nodiscard]] std::optional<Token> bos() const;
  [[nodiscard]] std::optional<Token> eos() const;
  // Whether texts begin with bos().
  [[nodiscard]] bool adds_bos() const;
  // nullopt: the model cannot fill.
  [[nodiscard]] std::optional<FillTokens> fill_tokens() const;

  // All pieces, including those of control tokens; created at the first call.
  [[nodiscard]] const TokenPieces& pieces() const;

  [[nodiscard]] const llama_vocab* get() const { return vocab_; }

 private:
  struct LazyPieces;
  struct Splitting;

  [[nodiscard]] bool has_begin(const MarkedText& prompt) const;

  Vocabulary(const llama_vocab* vocab, int n_tokens);

  [[nodiscard]] Result<std::vector<Token>> split(std::string_view text,
                                                 const Splitting& splitting) const;
  // The name of a control token as text, in tokens that are not control tokens.
  [[nodiscard]] std::vector<Token> spelled(Token token) const;

  const llama_vocab* vocab_;
  int n_tokens_;
  std::unique_ptr<LazyPieces> pieces_;
  SpecialTokens special_;
};

// Upper bound of the bytes that one token stands for. A text with more than this many bytes per
// token of the context is too long; it need not be split to know that.
[[nodiscard]] std::size_t token_bytes_max(const Vocabulary& vocabulary);

}  // namespace slipstream
