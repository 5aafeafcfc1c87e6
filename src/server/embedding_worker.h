// EmbeddingWorker: a thread that computes embeddings, so that the HTTP threads never wait for them.
//
// Threads: thread-safe; embed() is awaited on the handler's executor.
// Errors:  as in embedder.h; kOverloaded if too many texts wait.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <vector>

#include "engine/embedder.h"

namespace slipstream {

class EmbeddingWorker {
 public:
  explicit EmbeddingWorker(std::unique_ptr<Embedder> embedder) : embedder_(std::move(embedder)) {}

  [[nodiscard]] boost::asio::awaitable<Result<std::vector<float>>> embed(std::vector<Token> tokens);
  [[nodiscard]] const Embedder& embedder() const { return *embedder_; }

 private:
  const std::unique_ptr<Embedder> embedder_;
  std::atomic<int> n_waiting_ = 0;
  boost::asio::thread_pool thread_{1};  // must be the last member: it uses all others
};

}  // namespace slipstream
