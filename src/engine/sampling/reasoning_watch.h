// ReasoningWatch: follows an answer's text to know where the model reasons, counts the tokens of it,
// and ends reasoning that has become longer than it may: the closing markup is forced, and the model
// goes on with its answer.
//
// It looks at text, not at tokens, because models whose vocabulary has no token for the markup write
// it letter by letter.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "engine/sampling/sampling_params.h"

namespace slipstream {

class ReasoningWatch {
 public:
  struct Markup {
    std::string open_head;  // params.open without its last token
    Token open_last = 0;
    std::vector<Token> forced_end;
  };
  ReasoningWatch(ReasoningParams params, Markup markup);

  // The token that must come next, while reasoning is being ended.
  [[nodiscard]] std::optional<Token> forced() const;
  // The token that would open reasoning again though no more is allowed.
  [[nodiscard]] std::optional<Token> banned() const;
  // Continues after a token, of which this is the text.
  void accept(std::string_view piece);
  // Something forbids the forced token: the reasoning may last.
  void give_up();

  // Tokens of reasoning so far, without those that were forced.
  [[nodiscard]] int n_tokens() const { return n_tokens_; }

 private:
  enum class State {
    kStart,  // of the answer, or after reasoning: only white space was written
    kReasoning,
    kAnswer,
  };

  [[nodiscard]] bool is_spent() const {
    return params_.n_tokens_max && n_tokens_ >= *params_.n_tokens_max;
  }
  void follow_answer();
  void follow_reasoning();
  void end_if_spent();

  ReasoningParams params_;
  Markup markup_;
  std::size_t n_kept_ = 0;  // bytes in which an incomplete markup may begin
  State state_ = State::kStart;
  std::string text_;  // its last bytes
  int n_tokens_ = 0;
  std::optional<std::size_t> n_forced_;  // tokens of forced_end that were written
};

}  // namespace slipstream
