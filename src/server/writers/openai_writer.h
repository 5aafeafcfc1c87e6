// OpenAiWriter: what OpenAI's answers to /v1/chat/completions and /v1/completions have in common.
// A body has an id and choices, and each event of a stream is such a body.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/vocabulary.h"
#include "server/api/generation_options.h"
#include "server/json.h"
#include "server/served_model.h"
#include "server/turn/turn_writer.h"

namespace slipstream {

// A unique id, such as "cmpl-4f3a...".
[[nodiscard]] std::string new_id(std::string_view prefix);

// "stop", "length" or "tool_calls".
[[nodiscard]] std::string_view name(TurnEnd::Reason reason);

// The timings under llama-server's names. Like there, drafts are only named if there were some.
[[nodiscard]] Json timings_json(const Usage& usage);

class OpenAiWriter : public TurnWriter {
 public:
  StreamStart start() const final { return {.id = id_, .created = created_}; }
  void go_on_from(const StreamStart& start) final;
  std::string begin() final;
  std::string write(TurnStep step) final;
  std::string ping() final;
  std::string write(const ApiError& error) final;
  std::string end(const Usage& usage) final;
  std::string whole(const Usage& usage) final;

 protected:
  // The API's names for its answers.
  struct Names {
    std::string_view id_prefix;
    std::string_view whole;
    std::string_view chunk;
  };
  OpenAiWriter(const Names& names, const ServedModel& model, const GenerationOptions& options,
               std::size_t n_choices);

  [[nodiscard]] const Vocabulary& vocabulary() const { return model_.engine->vocabulary(); }
  [[nodiscard]] std::size_t n_choices() const { return n_choices_; }
  [[nodiscard]] bool wants_logprobs() const { return wants_logprobs_; }

 private:
  // For a stream: the choices before anything is generated, and what a step adds to its choice.
  // Each is sent as a chunk.
  [[nodiscard]] virtual std::vector<Json> first_choices() { return {}; }
  [[nodiscard]] virtual std::vector<Json> choices_of(TurnStep step) = 0;
  // A choice of a chunk that adds nothing to the answer.
  [[nodiscard]] virtual Json empty_choice() const = 0;
  // For an answer that is not streamed: the choice that was collected.
  [[nodiscard]] virtual Json choice(std::size_t idx) = 0;

  // timings: the usage that the chunks' timings are made of; null: they have none.
  [[nodiscard]] std::string chunks(std::vector<Json> choices, const Usage* timings = nullptr) const;
  [[nodiscard]] Json body(std::string_view object, Json choices) const;
  [[nodiscard]] Json progress_chunk(const PromptProgress& progress) const;

  const Names names_;
  const ServedModel& model_;
  const std::size_t n_choices_;
  const bool wants_logprobs_;
  const bool wants_usage_in_stream_;
  const bool wants_timings_;
  std::string id_;
  std::time_t created_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace slipstream
