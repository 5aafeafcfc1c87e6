// GeneratedAnswer: what is generated for one request, in the form of its API, whole or in events.
//
// An API says what an event of the engine is to its clients; how answers reach them, what they cost
// and how they fail is the same for all and is here.
//
// Threads: on the handler's executor. Errors: send(): what the engine failed with, while there is
// still an answer to give it in.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine_stream.h"
#include "server/routes/generation.h"
#include "server/served_model.h"

namespace slipstream {

class GeneratedAnswer {
 public:
  virtual ~GeneratedAnswer() = default;
  GeneratedAnswer(const GeneratedAnswer&) = delete;
  GeneratedAnswer& operator=(const GeneratedAnswer&) = delete;

  [[nodiscard]] const GenerationOptions& options() const { return options_; }

  // All that the stream gives, to the client.
  boost::asio::awaitable<ApiResult<void>> send(EngineStream& stream, HttpExchange& exchange);

 protected:
  // What an API calls its answers.
  struct Names {
    std::string_view id_prefix;
    std::string_view whole;
    std::string_view chunk;
  };
  // Choices are numbered as the stream's requests are: `options.n` of them for each prompt.
  GeneratedAnswer(const Names& names, const ServedModel& model, GenerationOptions options,
                  std::size_t n_choices);

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

  boost::asio::awaitable<ApiResult<void>> send_whole(EngineStream& stream, HttpExchange& exchange);
  boost::asio::awaitable<void> send_events(EngineStream& stream, HttpExchange& exchange);
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
  Usage usage_;
};

}  // namespace slipstream
