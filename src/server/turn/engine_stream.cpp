#include "server/turn/engine_stream.h"

#include <chrono>
#include <utility>

namespace slipstream {

EngineStream::EngineStream(ServedModel& model, HttpExchange& exchange,
                           std::shared_ptr<ClientAccount> account)
    : engine_(*model.engine),
      metrics_(*model.metrics),
      exchange_(exchange),
      account_(std::move(account)),
      mailbox_(std::make_shared<Mailbox>()),
      signal_(std::make_shared<Signal>(exchange.executor())) {}

EngineStream::~EngineStream() {
  for (const Request& request : requests_) {
    if (request.is_open) engine_.cancel(request.id);
  }
}

Result<void> EngineStream::submit(GenerateRequest request) {
  const Result<RequestId> id = engine_.submit(
      std::move(request),
      [mailbox = mailbox_, signal = signal_, number = requests_.size()](const Event& event) {
        {
          const MutexLock lock(mailbox->mutex);
          mailbox->items.push_back({.request = number, .event = event});
        }
        signal->notify();
      },
      sampler_);
  if (!id) return std::unexpected(id.error());
  requests_.push_back({.id = *id, .watch = RequestMetrics::Watch(metrics_, exchange_.arrived())});
  ++n_open_;
  return {};
}

void EngineStream::stop(std::size_t request) {
  Request& stopped = requests_[request];
  if (!stopped.is_open || stopped.is_stopped) return;
  stopped.is_stopped = true;
  engine_.cancel(stopped.id);
}

// Returns a limited number: other connections wait for this thread while the items are written.
std::vector<EngineStream::Item> EngineStream::take_items() {
  constexpr std::size_t kItemsMax = 64;
  std::vector<Item> items;
  const MutexLock lock(mailbox_->mutex);
  while (!mailbox_->items.empty() && items.size() < kItemsMax) {
    items.push_back(std::move(mailbox_->items.front()));
    mailbox_->items.pop_front();
  }
  return items;
}

boost::asio::awaitable<std::optional<std::vector<EngineStream::Item>>> EngineStream::next() {
  // The signal may be that of items which were taken with those before: that is no silence.
  const auto silence_end = std::chrono::steady_clock::now() + exchange_.silence_max();
  while (true) {
    std::vector<Item> items = take_items();
    for (Item& item : items) {
      std::optional<Ending>& ending = item.event.ending;
      const bool was_cancelled = ending && ending->reason == FinishReason::kCancelled;
      Request& request = requests_[item.request];
      if (was_cancelled && request.is_stopped) ending->reason = FinishReason::kStop;
      request.watch.take(item.event);
      if (account_) account_->charge_generated(item.event.tokens.size());
      if (!ending) continue;
      request.is_open = false;
      --n_open_;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!items.empty() || now >= silence_end) co_return items;
    if (!co_await exchange_.wait(*signal_, silence_end - now)) co_return std::nullopt;
  }
}

}  // namespace slipstream
