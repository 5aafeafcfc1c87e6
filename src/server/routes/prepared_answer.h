// PreparedAnswer: what a route has made of a body, on a worker, for the connection to send.
//
// Threads: made on a worker; then on the handler's executor. Errors: send(): ApiErrors, while there
// is still an answer to give them in.
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

  // Before send(), where the client has got the head of a stream and so much of it.
  virtual void go_on_from(const StreamStart& /*start*/) {}
  // What is long to write is written by the workers, too.
  virtual boost::asio::awaitable<ApiResult<void>> send(HttpExchange& exchange,
                                                       WorkerPool& workers) = 0;
};

// Or why there is none.
using Prepared = ApiResult<std::unique_ptr<PreparedAnswer>>;

// One that is whole already.
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
