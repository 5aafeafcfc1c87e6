// GeneratedAnswer: what is generated for one request, in the form of its API, whole or in events.
//
// An API says what an event of the engine is to its clients; how answers reach them, what they cost
// and how they fail is the same for all and is here.
//
// Events are written by the connection's own thread, so that a stream never waits for a worker.
// Only log-probabilities of a whole text, which can be long, are left to one.
//
// Threads: as of PreparedAnswer. Errors: send(): what the engine failed with, while there is still
// an answer to give it in.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine_stream.h"
#include "server/routes/generation.h"
#include "server/routes/prepared_answer.h"
#include "server/served_model.h"

namespace slipstream {

class GeneratedAnswer : public PreparedAnswer {
 public:
  [[nodiscard]] const GenerationOptions& options() const { return options_; }
  // Given to the engine on the worker; what comes of them is sent.
  [[nodiscard]] EngineStream& stream() { return stream_; }

  boost::asio::awaitable<ApiResult<void>> send(HttpExchange& exchange, WorkerPool& workers) final;

 protected:
  // What an API calls its answers.
  struct Names {
    std::string_view id_prefix;
    std::string_view whole;
    std::string_view chunk;
  };
  // Choices are numbered as the stream's requests are: `options.n` of them for each prompt.
  GeneratedAnswer(const Names& names, ServedModel& model, HttpExchange& exchange,
                  const Client& client, GenerationOptions options, std::size_t n_choices);

  [[nodiscard]] const Vocabulary& vocabulary() const { return model_.engine->vocabulary(); }
  [[nodiscard]] std::size_t n_choices() const { return n_choices_; }
  [[nodiscard]] bool wants_logprobs() const { return options_.sampling.n_top_logprobs >= 0; }

 private:
  // Of a stream: choices before anything is generated, and what an event adds to one; each is sent
  // as a chunk.
  [[nodiscard]] virtual std::vector<Json> first_choices() { return {}; }
  [[nodiscard]] virtual std::vector<Json> choices_of(std::size_t idx, Event event) = 0;
  // Of a whole answer: events are collected, and are then a choice.
  virtual void collect(std::size_t idx, Event event) = 0;
  [[nodiscard]] virtual Json choice(std::size_t idx) = 0;
  // Whether a choice has all that it is to have, though the model would go on.
  [[nodiscard]] virtual bool is_complete(std::size_t /*idx*/) const { return false; }

  using Items = std::vector<EngineStream::Item>;
  boost::asio::awaitable<ApiResult<void>> send_whole(HttpExchange& exchange, WorkerPool& workers);
  boost::asio::awaitable<ApiResult<void>> send_events(HttpExchange& exchange, WorkerPool& workers);
  [[nodiscard]] std::string whole();
  [[nodiscard]] std::string last_events() const;
  [[nodiscard]] std::string events_of(Items items);
  [[nodiscard]] std::string events_of(EngineStream::Item item);
  [[nodiscard]] std::string chunk(Json choice) const;
  [[nodiscard]] Json body(std::string_view object, Json choices) const;
  void count(std::size_t idx, const Usage& usage);

  const Names names_;
  const ServedModel& model_;
  const GenerationOptions options_;
  const std::size_t n_choices_;
  const std::string id_;
  const std::time_t created_;
  EngineStream stream_;
  Usage usage_;
};

}  // namespace slipstream
