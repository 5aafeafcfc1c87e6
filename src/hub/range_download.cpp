#include "hub/range_download.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace slipstream::hub {
namespace {

// The chunks that are requested at once: 64 MiB of a large file.
constexpr std::size_t kRunChunksMax = 8;

class Download {
 public:
  Download(const HttpRequest& request, const Subject& subject, PartialFile& file,
           const DownloadOptions& options)
      : request_(request), subject_(subject), file_(file), options_(options) {
    for (std::size_t i = 0; i < file.n_chunks(); ++i) {
      if (!file.has_chunk(i)) missing_.push_back(i);
    }
    done_bytes_ = file.done_bytes();
  }

  Result<void> run(const std::function<void(std::uint64_t)>& on_progress) {
    const auto n_workers =
        std::min(static_cast<std::size_t>(options_.n_connections), missing_.size());
    {
      std::vector<std::jthread> workers;
      n_running_ = n_workers;
      for (std::size_t i = 0; i < n_workers; ++i) workers.emplace_back([this] { work(); });
      std::unique_lock lock(mutex_);
      while (n_running_ > 0) {
        news_.wait_for(lock, std::chrono::milliseconds(100), [this] { return n_running_ == 0; });
        lock.unlock();
        if (options_.stop.stop_requested()) give_up(stopped_download());
        if (on_progress) on_progress(done_bytes_);
        lock.lock();
      }
    }
    if (error_) return std::unexpected(std::move(*error_));
    return {};
  }

 private:
  using Run = HttpRequest::Range;

  // The next adjacent missing chunks. When few are left, the run is shorter, so that all
  // connections get some.
  std::optional<Run> take_run() {
    const std::scoped_lock lock(mutex_);
    if (missing_.empty() || error_) return std::nullopt;
    const auto n_connections = static_cast<std::size_t>(options_.n_connections);
    const std::size_t n_fair = (missing_.size() + n_connections - 1) / n_connections;
    const std::size_t n_max = std::min(kRunChunksMax, n_fair);
    const std::size_t first = missing_.front();
    std::size_t n = 0;
    while (n < n_max && !missing_.empty() && missing_.front() == first + n) {
      missing_.pop_front();
      ++n;
    }
    return Run{.begin = file_.chunk_begin(first), .end = file_.chunk_end(first + n - 1)};
  }

  void work() {
    HttpConnection connection;
    while (const std::optional<Run> run = take_run()) {
      if (const Result<void> fetched = fetch(connection, *run); !fetched) give_up(fetched.error());
    }
    const std::scoped_lock lock(mutex_);
    --n_running_;
    news_.notify_all();
  }

  Result<void> fetch(HttpConnection& connection, Run run) {
    int n_failures = 0;
    while (run.begin < run.end) {
      const std::uint64_t begun_at = run.begin;
      std::optional<Error> own_error;
      HttpRequest request = request_;
      request.range = run;
      const HttpAnswer answer = connection.get(
          request,
          [&](const HttpAnswer& head, std::span<const std::byte> bytes) {
            own_error = take(head, HttpRequest::Range{begun_at, run.end}, bytes, run);
            return !own_error && !is_stopped_;
          },
          &is_stopped_);
      if (own_error) return std::unexpected(std::move(*own_error));
      if (is_stopped_) return {};
      const Verdict verdict = judge(answer, subject_);
      if (run.begin > begun_at) {
        n_failures = 0;
        if (!verdict.error) continue;  // a server may send less than requested
      }
      const bool is_final = verdict.error && !verdict.is_worth_retrying;
      if (is_final || ++n_failures > options_.n_retries) {
        return std::unexpected(verdict.error.value_or(
            Error{Code::kIo, host_of(answer.url) + " sends empty answers: is HF_ENDPOINT right?"}));
      }
      wait(std::max(backoff(n_failures), verdict.wait_min));
    }
    return {};
  }

  // Writes bytes of the run as they arrive and advances its beginning.
  std::optional<Error> take(const HttpAnswer& head, const Run& asked,
                            std::span<const std::byte> bytes, Run& run) {
    if (std::optional<Error> wrong = check_range(head, asked, file_.n_bytes())) return wrong;
    if (bytes.size() > run.end - run.begin) {
      return Error{
          Code::kCorrupt,
          host_of(head.url) + " sends more bytes than it was asked for: the rest was discarded"};
    }
    if (Result<void> written = file_.write(run.begin, bytes); !written) {
      return std::move(written.error());
    }
    const std::uint64_t end = run.begin + bytes.size();
    for (std::size_t chunk = file_.chunk_at(run.begin);
         chunk < file_.n_chunks() && file_.chunk_end(chunk) <= end; ++chunk) {
      if (Result<void> finished = file_.finish_chunk(chunk); !finished) {
        return std::move(finished.error());
      }
    }
    run.begin = end;
    done_bytes_ += bytes.size();
    return std::nullopt;
  }

  void give_up(Error error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    is_stopped_ = true;
    news_.notify_all();
  }

  void wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, time, [this] { return is_stopped_.load(); });
  }

  const HttpRequest& request_;
  const Subject& subject_;
  PartialFile& file_;
  const DownloadOptions options_;

  std::mutex mutex_;  // guards missing_, n_running_, error_
  std::condition_variable news_;
  std::deque<std::size_t> missing_;
  std::size_t n_running_ = 0;
  std::optional<Error> error_;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<std::uint64_t> done_bytes_ = 0;
};

}  // namespace

Error stopped_download() {
  return {Code::kCancelled, "the download was stopped: the next pull resumes it"};
}

Result<void> download_ranges(const HttpRequest& request, const Subject& subject, PartialFile& file,
                             const DownloadOptions& options,
                             const std::function<void(std::uint64_t done_bytes)>& on_progress) {
  Download download(request, subject, file, options);
  return download.run(on_progress);
}

}  // namespace slipstream::hub
