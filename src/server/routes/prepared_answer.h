// PreparedAnswer: the answer that a route has prepared from a body. The connection sends it.
//
// Threads: made on a worker, then used on the handler's executor.
// Errors:  send(): ApiErrors, unless the answer has begun.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <utility>

#include "server/api/api_error.h"
#include "server/http/http_exchange.h"
#include "server/turn/turn_writer.h"
#include "server/worker_pool.h"

namespace slipstream {

class PreparedAnswer {
 public:
  PreparedAnswer() = default;
  virtual ~PreparedAnswer() = default;
  PreparedAnswer(const PreparedAnswer&) = delete;
  PreparedAnswer& operator=(const PreparedAnswer&) = delete;

  // Call this before send() if the client already has the head of a stream and its first events.
  virtual void go_on_from(const StreamStart& /*start*/) {}
  // The workers also write what takes long to write.
  virtual boost::asio::awaitable<ApiResult<void>> send(HttpExchange& exchange,
                                                       WorkerPool& workers) = 0;
};

// The answer, or the reason why there is none.
using Prepared = ApiResult<std::unique_ptr<PreparedAnswer>>;

// An answer that is already complete.
class PreparedReply final : public PreparedAnswer {
 public:
  explicit PreparedReply(HttpReply reply) : reply_(std::move(reply)) {}

  boost::asio::awaitable<ApiResult<void>> send(HttpExchange& exchange,
                                               WorkerPool& /*workers*/) override {
    (void)co_await exchange.reply(std::move(reply_));
    co_return ApiResult<void>();
  }

 private:
  HttpReply reply_;
};

}  // namespace slipstream
