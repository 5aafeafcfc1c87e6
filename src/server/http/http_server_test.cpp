#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "server/http/body_budget.h"
#include "server/http/raw_client.h"

namespace slipstream {
namespace {

namespace asio = boost::asio;

TEST(HttpServer, WhoIsRefusedIsToldBeforeTheBodyIsRead) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    (void)co_await exchange.reply({.status = 401, .body = "who are you?"});
  });
  for (const std::string_view expect : {"", "Expect: 100-continue\r\n"}) {
    const RawClient client(server->port());
    client.send(format_text("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n{}\r\n",
                            kHttpLimits.http_body_bytes_max, expect));
    const std::string answer = client.read("who are you?");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << answer;
    EXPECT_TRUE(answer.contains("Connection: close")) << answer;
  }
  // A client that sends everything before it reads sees the answer too.
  const RawClient client(server->port());
  client.send(format_text("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n", 8 << 20));
  client.send(std::string(8 << 20, 'x'));
  EXPECT_TRUE(client.read().contains("who are you?"));
}

TEST(HttpServer, AHandlerThatWantsTheBodyReadsIt) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    const auto problem = co_await exchange.read_body();
    (void)co_await exchange.reply(
        {.status = problem ? problem->status : 200, .body = "<" + exchange.request().body() + ">"});
  });
  const RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("POST /x HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(client.read("\r\n\r\n").starts_with("HTTP/1.1 100"));
    client.send("body");
    EXPECT_TRUE(client.read("<body>").starts_with("HTTP/1.1 200")) << "and the connection is kept";
  }
  const RawClient large(server->port());
  large.send(format_text("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
                         kHttpLimits.http_body_bytes_max + 1));
  const std::string answer = large.read();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413") && answer.contains("Connection: close")) << answer;
}

asio::awaitable<void> tell_length(HttpExchange& exchange) {
  const auto problem = co_await exchange.read_body();
  (void)co_await exchange.reply({.status = problem ? problem->status : 200,
                                 .body = format_text("<{}>", exchange.request().body().size())});
}

std::string post_of(std::size_t n_bytes) {
  return format_text("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n", n_bytes);
}

// Room for two bodies of a million bytes, one of which is reserved for the body that began first.
HttpOptions two_bodies() {
  HttpOptions options;
  options.limits.http_body_bytes_max = 1'000'000;
  options.limits.http_bodies_bytes_max = 2'000'000;
  options.limits.http_free_body_bytes = 1000;
  return options;
}

TEST(HttpServer, BodiesTogetherAreBoundedAndShortOnesFree) {
  HttpOptions options = two_bodies();
  options.body_wait_max = std::chrono::milliseconds(300);
  const auto server = serve(tell_length, options);
  const RawClient slow(server->port());
  slow.send(post_of(1'000'000) + std::string(501'000, 'x'));
  ASSERT_TRUE(comes_true([&] { return server->n_body_bytes() == 500'000; })) << "what has arrived";

  const RawClient late(server->port());
  late.send(post_of(1'000'000) + std::string(1'000'000, 'x'));
  const RawClient ordinary(server->port());
  ordinary.send(post_of(1000) + std::string(1000, 'x'));
  EXPECT_TRUE(ordinary.read("<1000>").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(late.read(">").starts_with("HTTP/1.1 503"));
  // With chunks, the length is not known in advance.
  const RawClient chunked(server->port());
  chunked.send("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nC3500\r\n" +
               std::string(800'000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(chunked.read(">").starts_with("HTTP/1.1 503"));
  slow.send(std::string(499'000, 'x'));
  EXPECT_TRUE(slow.read("<1000000>").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(comes_true([&] { return server->n_body_bytes() == 0; })) << "all is given back";
}

TEST(HttpServer, ABodyWaitsForRoom) {
  const auto server = serve(tell_length, two_bodies());
  const RawClient slow(server->port());
  slow.send(post_of(1'000'000) + std::string(501'000, 'x'));
  ASSERT_TRUE(comes_true([&] { return server->n_body_bytes() == 500'000; }));
  const RawClient late(server->port());
  late.send(post_of(1'000'000) + std::string(1'000'000, 'x'));
  ASSERT_TRUE(comes_true([&] { return server->n_body_bytes() > 900'000; }));
  slow.send(std::string(499'000, 'x'));
  EXPECT_TRUE(slow.read("<1000000>").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(late.read("<1000000>").starts_with("HTTP/1.1 200"));
}

TEST(HttpServer, BodiesThatAreHalfThereDoNotWaitForEachOther) {
  const auto server = serve(tell_length, two_bodies());
  std::atomic<int> n_read = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 16; ++i) {
      clients.emplace_back([&] {
        const RawClient client(server->port());
        client.send(post_of(1'000'000));
        for (int piece = 0; piece < 10; ++piece) client.send(std::string(100'000, 'x'));
        if (client.read("<1000000>").starts_with("HTTP/1.1 200")) ++n_read;
      });
    }
  }
  EXPECT_EQ(n_read, 16);
}

TEST(HttpServer, ARouteMayWantShorterBodies) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    const auto problem = co_await exchange.read_body(10);
    (void)co_await exchange.reply({.status = problem ? problem->status : 200, .body = "!"});
  });
  for (const auto& [text, status] :
       {std::pair(post_of(10) + "0123456789", "200"), std::pair(post_of(11), "413"),
        std::pair(std::string("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n"
                              "01234567890\r\n0\r\n\r\n"),
                  "413")}) {
    const RawClient client(server->port());
    client.send(text);
    EXPECT_TRUE(client.read("!").contains(status)) << text;
  }
}

TEST(HttpServer, HeadHasNoBodyAndOldClientsGetNoChunks) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    if (exchange.path() == "/whole") {
      (void)co_await exchange.reply({.body = "0123456789"});
      co_return;
    }
    (void)co_await exchange.begin_stream({});
    (void)co_await exchange.send("one");
    (void)co_await exchange.send("two");
    (void)co_await exchange.end_stream();
  });
  const RawClient client(server->port());
  client.send("HEAD /whole HTTP/1.1\r\n\r\nGET /whole HTTP/1.1\r\n\r\n");
  const std::string both = client.read("0123456789");
  EXPECT_TRUE(both.contains("\r\n\r\nHTTP/1.1 200")) << "nothing stands between them: " << both;
  EXPECT_TRUE(both.contains("Content-Length: 10"));

  const RawClient old(server->port());
  old.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string stream = old.read();  // to the end of the connection
  EXPECT_TRUE(stream.ends_with("\r\n\r\nonetwo")) << stream;
  EXPECT_FALSE(stream.contains("chunked") || stream.contains("keep-alive")) << stream;
}

TEST(HttpServer, AClientThatLeavesIsSeenWhateverItSentBefore) {
  std::atomic<int> n_waiting = 0;
  std::atomic<int> n_left = 0;
  const auto server = serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    const auto never = std::make_shared<Signal>(exchange.executor());
    ++n_waiting;
    if (!co_await exchange.wait(*never)) ++n_left;
  });
  int n_clients = 0;
  for (const std::size_t n_extra : {std::size_t{0}, std::size_t{1}, std::size_t{64} << 10}) {
    RawClient client(server->port());
    client.send("GET /x HTTP/1.1\r\n\r\n");
    ++n_clients;
    ASSERT_TRUE(comes_true([&] { return n_waiting == n_clients; }));
    client.send(std::string(n_extra, 'x'));
    client.close();
    EXPECT_TRUE(comes_true([&] { return n_left == n_clients; })) << n_extra;
  }
  // This client sends more ahead than allowed. It is cut off although it stays connected.
  const RawClient greedy(server->port());
  greedy.send("GET /x HTTP/1.1\r\n\r\n" +
              std::string(kHttpLimits.http_ahead_bytes_max + 4096, 'x'));
  EXPECT_TRUE(comes_true([&] { return n_left == n_clients + 1; }));
}

TEST(HttpServer, WhatAHandlerThrowsEndsItsRequestOnly) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    if (exchange.path() == "/number") throw 5;  // NOLINT(hicpp-exception-baseclass)
    if (exchange.path() == "/memory") throw std::bad_alloc();
    (void)co_await exchange.reply({.body = "fine"});
  });
  const RawClient client(server->port());
  for (const std::string_view path : {"/number", "/memory"}) {
    client.send(format_text("GET {} HTTP/1.1\r\n\r\n", path));
    EXPECT_TRUE(client.read("500").starts_with("HTTP/1.1 500")) << path;
  }
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read("fine").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(comes_true([&] { return server->n_exchanges() == 0; }));
  EXPECT_TRUE(server->drain(std::chrono::milliseconds(500)));
}

TEST(HttpServer, AnAnswerThatCannotBeMadeCountsNoLonger) {
  const auto listening = HttpServer::listen(
      {.port = 0}, [](HttpExchange&) -> asio::awaitable<void> { throw std::bad_alloc(); },
      [](int, std::string_view) -> std::string { throw std::bad_alloc(); });
  ASSERT_TRUE(listening.has_value());
  const RawClient client((*listening)->port());
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read(), "");  // the connection is closed
  EXPECT_EQ((*listening)->n_exchanges(), 0);
  EXPECT_TRUE((*listening)->drain(std::chrono::milliseconds(500)));
}

// Otherwise the budget would keep room for a body that is gone, and compare its address.
TEST(BodyBudget, ForgetsAShareWhoseRequestFailed) {
  BodyBudget budget({.bytes_max = 100,
                     .body_bytes_max = 60,
                     .free_bytes = 0,
                     .wait_max = std::chrono::seconds(1)});
  asio::io_context io;
  const auto grow = [&](BodyBudget::Share& share, std::size_t n_bytes,
                        const asio::any_io_executor& executor) {
    io.restart();
    auto grown = asio::co_spawn(io, share.grow_to(n_bytes, executor), asio::use_future);
    io.run();
    return grown.get();
  };
  BodyBudget::Share first(budget);
  ASSERT_TRUE(grow(first, 50, io.get_executor()));
  {
    BodyBudget::Share second(budget);
    EXPECT_THROW(grow(second, 50, {}), std::exception);  // no timer without an executor
  }
  first.release();
  BodyBudget::Share third(budget);
  EXPECT_TRUE(grow(third, 60, io.get_executor()));
}

}  // namespace
}  // namespace slipstream
