// Turn: what the engine generates for one request, independent of any API: steps of reasoning,
// content and tool calls, up to the end of each choice.
//
// begin_chat() and begin_completion() make a turn from a request. A writer (turn_writer.h) turns
// its steps into the text of one API. Choices are numbered in the order of submission, and each
// prompt has options.n_per_prompt of them.
//
// Threads: made and filled on a worker, then used on the handler's executor.
// Errors:  submit(): as Engine::submit(); take(): 500 with the engine's error message.
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
#include "server/turn/citations.h"
#include "server/turn/engine_stream.h"

namespace slipstream {

struct TurnEnd {
  enum class Reason : std::uint8_t {
    kStop,
    kLength,
    kToolCalls,  // the model called tools and waits for their results
  };
  Reason reason;
  std::string matched_stop = {};  // the stop string that ended the choice, if any
  bool said_nothing = false;      // in the whole choice
  std::vector<Citation> citations = {};
};

// What is new in one choice. All fields may be empty.
struct TurnStep {
  std::size_t choice;
  ChatDeltas deltas = {};
  std::vector<Sampled> tokens = {};                 // their text may come later, or not at all
  std::vector<TokenLogprobs> prompt_logprobs = {};  // from the prompt's second token on
  std::optional<PromptProgress> progress = {};      // if set, nothing else is new
  Usage usage = {};                                 // of the choice, so far
  std::optional<TurnEnd> end = {};                  // if set, this is the last step
};

class Turn {
 public:
  struct Options {
    int n_per_prompt = 1;
    std::optional<OutputParser::Options> parsing = {};  // none: all output is content
    std::shared_ptr<const ShownSources> sources = {};   // that answers may cite; null: none
    std::size_t n_turns_dropped = 0;  // of the conversation, because it is longer than the window
  };
  // account: is charged for the generated tokens; may be null.
  Turn(ServedModel& model, HttpExchange& exchange, std::shared_ptr<ClientAccount> account,
       Options options);

  // Adds a choice.
  [[nodiscard]] Result<void> submit(GenerateRequest request);

  using Items = std::vector<EngineStream::Item>;
  // As EngineStream::next(): nullopt if the client has gone, an empty list after a silence.
  [[nodiscard]] boost::asio::awaitable<std::optional<Items>> next() { return stream_.next(); }
  // Turns an item of next() into a step. A choice that is complete is stopped, even if the model
  // would go on. REQUIRES: items are passed in the order in which they came.
  [[nodiscard]] ApiResult<TurnStep> take(EngineStream::Item item);
  [[nodiscard]] bool has_ended() const { return stream_.has_ended(); }
  // The number of tokens of all prompts.
  [[nodiscard]] std::size_t n_prompt() const { return n_prompt_; }
  [[nodiscard]] std::size_t n_turns_dropped() const { return options_.n_turns_dropped; }
  // The usage of the choices that have ended. A prompt counts once, however many answers it has.
  [[nodiscard]] const Usage& usage() const { return usage_; }

 private:
  struct Choice {
    std::unique_ptr<OutputParser> parser;     // null: the output is not parsed
    std::optional<CitationFinder> citations;  // none: there is nothing to cite
    bool has_calls = false;
    bool has_said_something = false;
    bool is_complete = false;  // the model wrote the only call that it is allowed
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
