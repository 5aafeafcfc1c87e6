#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>

#include "server/http/raw_client.h"

namespace slipstream {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kAsk = "GET /x HTTP/1.1\r\n\r\n";

// Replies with the result of the work, or with its error.
asio::awaitable<void> reply_with(HttpExchange& exchange, ApiResult<std::string> result) {
  HttpReply reply{.status = result ? 200 : result.error().status,
                  .body = result ? *result : result.error().message};
  reply.body += '!';
  (void)co_await exchange.reply(std::move(reply));
}

TEST(WorkerPool, RefusesWhatCannotWaitAndAnswersMeanwhile) {
  WorkerPool workers(1, 2);
  std::latch may_end(1);
  std::atomic<int> n_begun = 0;
  const auto server = serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    if (exchange.path() == "/health") co_return co_await reply_with(exchange, "fine");
    co_await reply_with(exchange, co_await workers.run(exchange, [&]() -> ApiResult<std::string> {
      ++n_begun;
      may_end.wait();
      return "done";
    }));
  });
  const RawClient first(server->port());
  first.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return n_begun == 1; }));
  const RawClient second(server->port());
  second.send(kAsk);
  const RawClient third(server->port());
  third.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return workers.n_waiting() == 2; }));
  const RawClient fourth(server->port());
  fourth.send(kAsk);
  const std::string refusal = fourth.read("!");
  EXPECT_TRUE(refusal.starts_with("HTTP/1.1 503") && refusal.contains("waiting")) << refusal;
  const RawClient health(server->port());
  health.send("GET /health HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(health.read("fine!").starts_with("HTTP/1.1 200"));
  may_end.count_down();
  for (const RawClient* client : {&first, &second, &third}) {
    EXPECT_TRUE(client->read("done!").starts_with("HTTP/1.1 200"));
  }
  fourth.send(kAsk);
  EXPECT_TRUE(fourth.read("done!").starts_with("HTTP/1.1 200")) << "there is room again";
}

TEST(WorkerPool, WorkOfWhoHasLeftIsNotBegunAndBegunWorkIsWaitedFor) {
  WorkerPool workers(1, 8);
  std::latch may_end(1);
  std::atomic<int> n_begun = 0;
  std::atomic<int> n_done = 0;
  std::atomic<int> n_left = 0;
  const auto server = serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    const std::string owned = "of the handler";
    const auto result = co_await workers.run(exchange, [&]() -> ApiResult<std::string> {
      ++n_begun;
      may_end.wait();
      n_done += owned == "of the handler" ? 1 : 100;
      return owned;
    });
    if (!result && result.error().status == 499) ++n_left;
  });
  RawClient first(server->port());
  first.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return n_begun == 1; }));
  RawClient second(server->port());
  second.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return workers.n_waiting() == 1; }));
  second.close();
  EXPECT_TRUE(comes_true([&] { return n_left == 1; })) << "it waits for nobody";
  first.close();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server->n_exchanges(), 1);
  may_end.count_down();
  EXPECT_TRUE(comes_true([&] { return server->n_exchanges() == 0; }));
  workers.join();
  EXPECT_EQ(n_begun, 1);
  EXPECT_EQ(n_done, 1);
}

TEST(WorkerPool, WhatIsThrownReachesTheHandler) {
  WorkerPool workers(1, 8);
  const auto server = serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    (void)co_await workers.run(exchange,
                               []() -> ApiResult<std::string> { throw std::bad_alloc(); });
  });
  const RawClient client(server->port());
  client.send(kAsk);
  EXPECT_TRUE(client.read("500").starts_with("HTTP/1.1 500"));
}

}  // namespace
}  // namespace slipstream
