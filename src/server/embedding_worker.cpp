#include "server/embedding_worker.h"

#include <utility>

#include "server/run_on.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

constexpr int kWaitingMax = 256;

class Place {
 public:
  explicit Place(std::atomic<int>& n_taken) : n_taken_(n_taken) { ++n_taken_; }
  ~Place() { --n_taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::atomic<int>& n_taken_;
};

}  // namespace

asio::awaitable<Result<std::vector<float>>> EmbeddingWorker::embed(std::vector<Token> tokens) {
  if (n_waiting_ >= kWaitingMax) co_return fail(Code::kOverloaded, "too many texts are waiting");
  const Place place(n_waiting_);
  co_return co_await run_on(thread_, [&] { return embedder_->embed(tokens); });
}

}  // namespace slipstream
