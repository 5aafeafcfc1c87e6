// ReadingWorker: reads texts on a thread of its own, beside the engine, those of several requests in
// one batch. It gives way to the threads that serve sockets and compute answers.
//
// Threads: thread-safe; read() is awaited on the handler's executor.
// Errors:  as in text_reader.h; kOverloaded if too much waits; kCancelled if the client has gone;
//          kUnsupported if the model's numbers are not finite.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <condition_variable>
#include <memory>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/embedding/text_reader.h"
#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/reading/reading_limits.h"
#include "server/reading/reading_queue.h"
#include "server/reading/reading_stats.h"

namespace slipstream {

class ReadingWorker {
 public:
  using Row = TextReader::Row;

  // The reader must outlive this.
  explicit ReadingWorker(TextReader& reader, const ReadingLimits& limits = kReadingLimits);
  ~ReadingWorker();
  ReadingWorker(const ReadingWorker&) = delete;
  ReadingWorker& operator=(const ReadingWorker&) = delete;

  // What a request holds until its answer is sent.
  class Place {
   public:
    Place(ReadingWorker& worker, std::size_t n_bytes) : worker_(&worker), n_bytes_(n_bytes) {}
    ~Place() {
      if (worker_ != nullptr) worker_->release(n_bytes_);
    }
    Place(Place&& other) noexcept
        : worker_(std::exchange(other.worker_, nullptr)), n_bytes_(other.n_bytes_) {}
    Place& operator=(Place&&) = delete;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ReadingWorker* worker_;
    std::size_t n_bytes_;
  };
  struct Answer {
    std::vector<Row> rows;  // one for each text
    Place place;
  };
  // REQUIRES: the texts are checked, and there are some.
  boost::asio::awaitable<Result<Answer>> read(HttpExchange& exchange, const Client& client,
                                              std::vector<std::vector<Token>> texts);
  [[nodiscard]] ReadingStats stats() const;

 private:
  // A request in progress.
  struct Progress {
    std::shared_ptr<Signal> ended;
    std::vector<Row> rows;
    std::size_t n_done = 0;
    Result<void> result = {};
  };

  // A request is known as long as its handler waits.
  class Stay {
   public:
    Stay(ReadingWorker& worker, std::shared_ptr<const ReadingRequest> request,
         std::shared_ptr<Signal> ended);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    // REQUIRES: it has ended.
    [[nodiscard]] Result<std::vector<Row>> take_rows() const;

   private:
    ReadingWorker& worker_;
    const std::shared_ptr<const ReadingRequest> request_;  // shared with the queue
  };

  [[nodiscard]] std::size_t bytes_of(const ReadingRequest& request) const;
  [[nodiscard]] Result<Place> enter(std::size_t n_bytes);
  void release(std::size_t n_bytes);
  [[nodiscard]] std::vector<ReadingQueue::Text> take_batch();
  void run(const std::stop_token& stop);
  void read_batch(const std::vector<ReadingQueue::Text>& batch);
  void settle(const std::vector<ReadingQueue::Text>& batch, Result<std::vector<Row>> rows);

  TextReader& reader_;
  const ReadingLimits limits_;
  mutable Mutex mutex_;
  std::condition_variable_any has_work_;
  ReadingQueue queue_ SLIP_GUARDED_BY(mutex_);
  std::unordered_map<const ReadingRequest*, Progress> requests_ SLIP_GUARDED_BY(mutex_);
  std::size_t n_places_ SLIP_GUARDED_BY(mutex_) = 0;
  std::size_t n_bytes_ SLIP_GUARDED_BY(mutex_) = 0;
  ReadingStats stats_ SLIP_GUARDED_BY(mutex_);
  std::jthread thread_;  // must be the last member: it uses all others
};

}  // namespace slipstream
