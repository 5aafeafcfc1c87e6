#include "server/embedding_worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

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

asio::awaitable<Result<std::vector<float>>> compute(Embedder& embedder, std::vector<Token> tokens) {
  co_return embedder.embed(tokens);
}

}  // namespace

asio::awaitable<Result<std::vector<float>>> EmbeddingWorker::embed(std::vector<Token> tokens) {
  if (n_waiting_ >= kWaitingMax) co_return fail(Code::kOverloaded, "too many texts are waiting");
  const Place place(n_waiting_);
  co_return co_await asio::co_spawn(thread_, compute(*embedder_, std::move(tokens)),
                                    asio::use_awaitable);
}

}  // namespace slipstream
