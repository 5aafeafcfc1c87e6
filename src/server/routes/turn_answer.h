// TurnAnswer: sends a turn to the client, as one answer or as events. A writer makes the text.
//
// The connection's thread writes events itself, so that a stream does not wait for a worker. Only
// the log-probabilities of a whole text, which can be long, are written on a worker. at_end runs on
// a worker, too.
//
// Threads: as PreparedAnswer.
// Errors:  send(): the engine's error, unless the answer has begun.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "server/api/generation_options.h"
#include "server/routes/prepared_answer.h"
#include "server/turn/turn.h"
#include "server/turn/turn_writer.h"

namespace slipstream {

class TurnAnswer final : public PreparedAnswer {
 public:
  struct Form {
    explicit Form(const GenerationOptions& options)
        : streams(options.streams), has_logprobs(options.sampling.n_top_logprobs >= 0) {}
    bool streams;
    bool has_logprobs;
  };
  // at_end: called on a worker once the answer is complete, before the client gets its end. Not
  // called if the client has gone or an answer that is not streamed fails. May be empty.
  TurnAnswer(std::unique_ptr<Turn> turn, std::unique_ptr<TurnWriter> writer, const Form& form,
             std::function<void()> at_end = {});

  void go_on_from(const StreamStart& start) override;
  boost::asio::awaitable<ApiResult<void>> send(HttpExchange& exchange,
                                               WorkerPool& workers) override;

 private:
  boost::asio::awaitable<ApiResult<void>> send_whole(HttpExchange& exchange, WorkerPool& workers);
  boost::asio::awaitable<ApiResult<void>> send_events(HttpExchange& exchange, WorkerPool& workers);
  [[nodiscard]] std::string events_of(Turn::Items items);

  const std::unique_ptr<Turn> turn_;
  const std::unique_ptr<TurnWriter> writer_;
  const Form form_;
  const std::function<void()> at_end_;
  bool has_head_ = false;
};

}  // namespace slipstream
