// Turn: what the engine generates for one request, in the words of no API: steps of reasoning,
// content and tool calls, up to the end of each choice.
//
// begin_chat() and begin_completion() make one of a request; a writer (turn_writer.h) makes one
// API's text of its steps. Choices are numbered as they are submitted, options.n_per_prompt of them
// for each prompt.
//
// Threads: made and filled on a worker, then on the handler's executor.
// Errors:  submit(): as of the engine; take(): 500 with what the engine failed with.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "server/api/api_error.h"
#include "server/client_account.h"
#include "server/http/http_exchange.h"
#include "server/output/chat_delta.h"
#include "server/output/output_parser.h"
#include "server/served_model.h"
#include "server/turn/engine_stream.h"

namespace slipstream {

struct TurnEnd {
  enum class Reason : std::uint8_t {
    kStop,
    kLength,
    kToolCalls,  // a model that calls tools waits for their results
  };
  Reason reason;
  std::string matched_stop = {};  // where a stop string was met
  bool said_nothing = false;      // in the whole choice
};

// What is new of one choice. All of it may be empty.
struct TurnStep {
  std::size_t choice;
  ChatDeltas deltas = {};
  std::vector<Sampled> tokens = {};                 // their text may come later, or be no text
  std::vector<TokenLogprobs> prompt_logprobs = {};  // from the prompt's second token on
  std::optional<PromptProgress> progress = {};      // nothing else is new then
  Usage usage = {};                                 // of the choice, so far
  std::optional<TurnEnd> end = {};                  // nothing follows
};

class Turn {
 public:
  struct Options {
    int n_per_prompt = 1;
    std::optional<OutputParser::Options> parsing = {};  // none: all that is written is content
  };
  // account: who pays for what is generated; may be null.
  Turn(ServedModel& model, HttpExchange& exchange, std::shared_ptr<ClientAccount> account,
       Options options);

  // One more choice.
  [[nodiscard]] Result<void> submit(GenerateRequest request);

  using Items = std::vector<EngineStream::Item>;
  // As of EngineStream: none if the client has gone, an empty list after a silence.
  [[nodiscard]] boost::asio::awaitable<std::optional<Items>> next() { return stream_.next(); }
  // What an item of next() is, in their order. A choice that has all it is to have is stopped,
  // though the model would go on.
  [[nodiscard]] ApiResult<TurnStep> take(EngineStream::Item item);
  [[nodiscard]] bool has_ended() const { return stream_.has_ended(); }
  // Tokens of the prompts.
  [[nodiscard]] std::size_t n_prompt() const { return n_prompt_; }
  // Of the choices that have ended. A prompt costs once, however many answers it has.
  [[nodiscard]] const Usage& usage() const { return usage_; }

 private:
  struct Choice {
    std::unique_ptr<OutputParser> parser;  // null: there is nothing to parse
    bool has_calls = false;
    bool has_said_something = false;
    bool is_complete = false;  // the model wrote the only call that it may
  };

  [[nodiscard]] static ChatDeltas deltas_of(Choice& choice, Event& event);
  [[nodiscard]] static TurnEnd end_of(const Choice& choice, Ending ending);
  void count(std::size_t choice, const Usage& usage);

  const Options options_;
  EngineStream stream_;
  std::vector<Choice> choices_;
  std::size_t n_prompt_ = 0;
  Usage usage_;
};

}  // namespace slipstream
