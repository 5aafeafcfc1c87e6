#include "server/engine_stream.h"

#include <utility>

namespace slipstream {

EngineStream::EngineStream(ServedModel& model, HttpExchange& exchange)
    : engine_(*model.engine),
      metrics_(*model.metrics),
      exchange_(exchange),
      mailbox_(std::make_shared<Mailbox>()),
      signal_(std::make_shared<Signal>(exchange.executor())) {}

EngineStream::~EngineStream() {
  for (const std::optional<RequestId>& id : open_) {
    if (id) engine_.cancel(*id);
  }
}

Result<void> EngineStream::submit(GenerateRequest request) {
  const Result<RequestId> id = engine_.submit(
      std::move(request),
      [mailbox = mailbox_, signal = signal_, number = open_.size()](const Event& event) {
        {
          const MutexLock lock(mailbox->mutex);
          mailbox->items.push_back({.request = number, .event = event});
        }
        signal->notify();
      });
  if (!id) return std::unexpected(id.error());
  open_.emplace_back(*id);
  is_stopped_.push_back(false);
  watches_.emplace_back(metrics_, exchange_.arrived());
  ++n_open_;
  return {};
}

void EngineStream::stop(std::size_t request) {
  if (!open_[request] || is_stopped_[request]) return;
  is_stopped_[request] = true;
  engine_.cancel(*open_[request]);
}

boost::asio::awaitable<std::optional<std::vector<EngineStream::Item>>> EngineStream::next() {
  while (true) {
    std::vector<Item> items;
    {
      const MutexLock lock(mailbox_->mutex);
      items.swap(mailbox_->items);
    }
    for (Item& item : items) {
      std::optional<Ending>& ending = item.event.ending;
      const bool was_cancelled = ending && ending->reason == FinishReason::kCancelled;
      if (was_cancelled && is_stopped_[item.request]) ending->reason = FinishReason::kStop;
      watches_[item.request].take(item.event);
      if (!ending) continue;
      open_[item.request].reset();
      --n_open_;
    }
    if (!items.empty()) co_return items;
    if (!co_await exchange_.wait(*signal_)) co_return std::nullopt;
  }
}

}  // namespace slipstream
