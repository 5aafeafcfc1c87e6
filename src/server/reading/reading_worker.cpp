#include "server/reading/reading_worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/model/own_thread.h"
#include "server/give_way.h"

namespace slipstream {

namespace asio = boost::asio;

ReadingWorker::ReadingWorker(TextReader& reader, const ReadingLimits& limits)
    : reader_(reader),
      limits_(limits),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ReadingWorker::~ReadingWorker() = default;

std::size_t ReadingWorker::bytes_of(const ReadingRequest& request) const {
  constexpr std::size_t kTextPerNumber = 12;  // of an answer in JSON
  std::size_t n_bytes = 0;
  for (const std::vector<Token>& text : request.texts) n_bytes += text.size() * sizeof(Token);
  return n_bytes + request.texts.size() * static_cast<std::size_t>(reader_.n_columns()) *
                       (sizeof(float) + kTextPerNumber);
}

Result<ReadingWorker::Place> ReadingWorker::enter(std::size_t n_bytes) {
  const MutexLock lock(mutex_);
  // A single request always has room: its limits are those of its API.
  const bool has_room = n_bytes_ == 0 || n_bytes_ + n_bytes <= limits_.bytes_max;
  if (n_places_ >= limits_.requests_max || !has_room) {
    return fail(Code::kOverloaded, "too many texts are waiting");
  }
  ++n_places_;
  n_bytes_ += n_bytes;
  return Place(*this, n_bytes);
}

void ReadingWorker::release(std::size_t n_bytes) {
  const MutexLock lock(mutex_);
  --n_places_;
  n_bytes_ -= n_bytes;
}

asio::awaitable<Result<ReadingWorker::Answer>> ReadingWorker::read(
    HttpExchange& exchange, const Client& client, std::vector<std::vector<Token>> texts) {
  const auto request = std::make_shared<const ReadingRequest>(ReadingRequest{
      .client = client.name, .priority = client.priority, .texts = std::move(texts)});
  Result<Place> place = enter(bytes_of(*request));
  if (!place) co_return std::unexpected(place.error());
  const auto ended = std::make_shared<Signal>(exchange.executor());
  const Stay stay(*this, request, ended);
  if (!co_await exchange.wait(*ended)) co_return fail(Code::kCancelled, "the client has gone");
  Result<std::vector<Row>> rows = stay.take_rows();
  if (!rows) co_return std::unexpected(rows.error());
  co_return Answer{.rows = std::move(*rows), .place = std::move(*place)};
}

ReadingWorker::Stay::Stay(ReadingWorker& worker, std::shared_ptr<const ReadingRequest> request,
                          std::shared_ptr<Signal> ended)
    : worker_(worker), request_(std::move(request)) {
  {
    const MutexLock lock(worker_.mutex_);
    worker_.requests_[request_.get()] = {.ended = std::move(ended),
                                         .rows = std::vector<Row>(request_->texts.size())};
    worker_.queue_.add(request_);
  }
  worker_.has_work_.notify_one();
}

ReadingWorker::Stay::~Stay() {
  const MutexLock lock(worker_.mutex_);
  worker_.queue_.remove(*request_);
  worker_.requests_.erase(request_.get());
}

Result<std::vector<ReadingWorker::Row>> ReadingWorker::Stay::take_rows() const {
  const MutexLock lock(worker_.mutex_);
  Progress& progress = worker_.requests_.find(request_.get())->second;
  if (!progress.result) return std::unexpected(progress.result.error());
  return std::move(progress.rows);
}

ReadingStats ReadingWorker::stats() const {
  const MutexLock lock(mutex_);
  ReadingStats stats = stats_;
  stats.n_waiting = queue_.n_texts();
  return stats;
}

std::vector<ReadingQueue::Text> ReadingWorker::take_batch() {
  const MutexLock lock(mutex_);
  return queue_.take_batch([this](std::size_t n_texts, std::size_t n_tokens, std::size_t n) {
    return reader_.has_room(n_texts, n_tokens, n);
  });
}

void ReadingWorker::run(const std::stop_token& stop) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      const bool has_work = has_work_.wait(
          mutex_, stop,
          [this]() SLIP_TSA(no_thread_safety_analysis) { return queue_.n_texts() > 0; });
      if (!has_work || stop.stop_requested()) return;
    }
    // Its team of threads, which wait beside the engine's, ends when nothing waits.
    on_own_thread([&] {
      (void)give_way();
      while (!stop.stop_requested()) {
        const std::vector<ReadingQueue::Text> batch = take_batch();
        if (batch.empty()) return;
        read_batch(batch);
      }
    });
  }
}

void ReadingWorker::read_batch(const std::vector<ReadingQueue::Text>& batch) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<Token>> texts;
  std::int64_t n_tokens = 0;
  for (const ReadingQueue::Text& text : batch) {
    texts.push_back(text.request->texts[text.idx]);
    n_tokens += std::ssize(texts.back());
  }
  const Clock::time_point begun = Clock::now();
  Result<std::vector<Row>> rows = reader_.read_batch(texts);
  const auto is_finite = [](const Row& row) {
    return std::ranges::all_of(row, [](float value) { return std::isfinite(value); });
  };
  if (rows && !std::ranges::all_of(*rows, is_finite)) {
    rows = fail(Code::kUnsupported, "what the model computes is not a number: its file is damaged");
  }
  {
    const MutexLock lock(mutex_);
    ++stats_.n_batches;
    stats_.n_texts += std::ssize(batch);
    stats_.n_tokens += n_tokens;
    stats_.seconds += std::chrono::duration<double>(Clock::now() - begun).count();
  }
  settle(batch, std::move(rows));
}

void ReadingWorker::settle(const std::vector<ReadingQueue::Text>& batch,
                           Result<std::vector<Row>> rows) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto found = requests_.find(batch[i].request.get());
    if (found == requests_.end()) continue;  // the client has gone
    Progress& progress = found->second;
    if (rows) {
      progress.rows[batch[i].idx] = std::move((*rows)[i]);
      if (++progress.n_done == progress.rows.size()) progress.ended->notify();
    } else if (progress.result) {  // the first error ends it
      progress.result = std::unexpected(rows.error());
      queue_.remove(*batch[i].request);
      progress.ended->notify();
    }
  }
}

}  // namespace slipstream
