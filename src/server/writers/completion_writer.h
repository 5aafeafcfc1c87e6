// CompletionWriter: the answer to POST /v1/completions.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/api/completion_request.h"
#include "server/writers/openai_writer.h"

namespace slipstream {

class CompletionWriter final : public OpenAiWriter {
 public:
  using Prompts = std::vector<std::vector<Token>>;
  // prompts: those of the turn. The answers begin with them if the request asks for an echo.
  CompletionWriter(const ServedModel& model, const CompletionRequest& request, Prompts prompts);

  void collect(TurnStep step) override;

 private:
  struct Piece {
    std::string text = {};
    std::vector<Sampled> tokens = {};
    std::vector<TokenLogprobs> prompt_logprobs = {};
    std::optional<TurnEnd> end = {};
  };
  // How much of a choice has been sent to the client.
  struct Progress {
    bool has_begun = false;
    std::size_t offset = 0;  // of the next token in the text
  };

  static void append(Piece& piece, TurnStep step);
  std::vector<Json> choices_of(TurnStep step) override;
  Json empty_choice() const override;
  Json choice(std::size_t idx) override { return to_choice(idx, collected_[idx]); }
  [[nodiscard]] Json to_choice(std::size_t idx, const Piece& piece);
  [[nodiscard]] Json logprobs(std::size_t idx, const Piece& piece, bool echoes_now);
  void add(Json& logprobs, Token token, const TokenLogprobs* of, std::size_t& offset) const;
  [[nodiscard]] const std::vector<Token>& prompt(std::size_t idx) const;
  [[nodiscard]] std::string prompt_text(std::size_t idx) const;
  [[nodiscard]] std::string piece_of(Token token) const { return vocabulary().piece(token, true); }

  const bool echoes_;
  const std::size_t n_per_prompt_;
  const Prompts prompts_;
  std::vector<Piece> collected_;
  std::vector<Progress> progress_;
};

}  // namespace slipstream
