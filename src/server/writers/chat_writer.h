// ChatWriter: the answer to POST /v1/chat/completions.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <optional>
#include <vector>

#include "server/output/chat_answer.h"
#include "server/writers/openai_writer.h"

namespace slipstream {

class ChatWriter final : public OpenAiWriter {
 public:
  ChatWriter(const ServedModel& model, const GenerationOptions& options);

  void collect(TurnStep step) override;

 private:
  struct Collected {
    ChatAnswer answer = {};
    std::vector<Sampled> tokens = {};
    std::optional<TurnEnd> end = {};
  };

  std::vector<Json> first_choices() override;
  std::vector<Json> choices_of(TurnStep step) override;
  Json empty_choice() const override;
  Json choice(std::size_t idx) override;
  [[nodiscard]] Json logprobs(const std::vector<Sampled>& tokens) const;

  std::vector<Collected> collected_;
};

}  // namespace slipstream
