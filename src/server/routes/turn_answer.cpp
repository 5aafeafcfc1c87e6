#include "server/routes/turn_answer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace slipstream {

namespace asio = boost::asio;

TurnAnswer::TurnAnswer(std::unique_ptr<Turn> turn, std::unique_ptr<TurnWriter> writer,
                       const Form& form, std::function<void()> at_end)
    : turn_(std::move(turn)), writer_(std::move(writer)), form_(form), at_end_(std::move(at_end)) {}

void TurnAnswer::go_on_from(const StreamStart& start) {
  has_head_ = true;
  writer_->go_on_from(start);
}

asio::awaitable<ApiResult<void>> TurnAnswer::send(HttpExchange& exchange, WorkerPool& workers) {
  exchange.drop_body();  // the engine already has what it needs
  if (const std::size_t n = turn_->n_turns_dropped(); n > 0) {
    exchange.add_header("X-Slipstream-Dropped-Turns", std::to_string(n));  // unless it has begun
    writer_->set_turns_dropped(n);
  }
  return form_.streams ? send_events(exchange, workers) : send_whole(exchange, workers);
}

asio::awaitable<ApiResult<void>> TurnAnswer::send_whole(HttpExchange& exchange,
                                                        WorkerPool& workers) {
  while (!turn_->has_ended()) {
    auto items = co_await turn_->next();
    if (!items) co_return ApiResult<void>();
    for (EngineStream::Item& item : *items) {
      ApiResult<TurnStep> step = turn_->take(std::move(item));
      if (!step) co_return std::unexpected(step.error());
      writer_->collect(std::move(*step));
    }
  }
  const auto write = [this]() -> ApiResult<std::string> {
    std::string whole = writer_->whole(turn_->usage());
    if (at_end_) at_end_();
    return whole;
  };
  const bool is_long = form_.has_logprobs || at_end_;
  ApiResult<std::string> body = is_long ? co_await workers.go_on(exchange, write) : write();
  if (!body) co_return std::unexpected(body.error());
  (void)co_await exchange.reply({.body = std::move(*body)});
  co_return ApiResult<void>();
}

asio::awaitable<ApiResult<void>> TurnAnswer::send_events(HttpExchange& exchange,
                                                         WorkerPool& workers) {
  if (!has_head_ && !co_await exchange.begin_stream(writer_->head())) {
    co_return ApiResult<void>();
  }
  const std::string first = writer_->begin();
  if (!co_await exchange.send(first)) co_return ApiResult<void>();
  while (!turn_->has_ended()) {
    auto items = co_await turn_->next();
    if (!items) co_return ApiResult<void>();
    if (items->empty()) {
      const std::string ping = writer_->ping();
      if (!co_await exchange.send(ping)) co_return ApiResult<void>();
      continue;
    }
    const bool is_long = std::ranges::any_of(
        *items, [](const auto& item) { return !item.event.prompt_logprobs.empty(); });
    const auto write = [&]() -> ApiResult<std::string> { return events_of(std::move(*items)); };
    const ApiResult<std::string> events =
        is_long ? co_await workers.go_on(exchange, write) : write();
    if (!events || !co_await exchange.send(*events)) co_return ApiResult<void>();
  }
  const auto write_end = [this]() -> ApiResult<std::string> {
    std::string last = writer_->end(turn_->usage());
    if (at_end_) at_end_();
    return last;
  };
  const ApiResult<std::string> last =
      at_end_ ? co_await workers.go_on(exchange, write_end) : write_end();
  if (last && co_await exchange.send(*last)) (void)co_await exchange.end_stream();
  co_return ApiResult<void>();
}

std::string TurnAnswer::events_of(Turn::Items items) {
  std::string events;
  for (EngineStream::Item& item : items) {
    ApiResult<TurnStep> step = turn_->take(std::move(item));
    if (step) {
      events += writer_->write(*std::move(step));
    } else {
      events += writer_->write(step.error());
    }
  }
  return events;
}

}  // namespace slipstream
