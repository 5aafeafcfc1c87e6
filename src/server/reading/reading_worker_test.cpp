#include "server/reading/reading_worker.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/model/model.h"
#include "server/http/raw_client.h"

namespace slipstream {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kAsk = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// A server that reads the same texts for whoever asks, and says how many rows there are.
class ReadingWorkerTest : public testing::Test {
 protected:
  void start(std::size_t n_texts, const ReadingLimits& limits = kReadingLimits) {
    load_backends();
    model_.reset(llama_model_load_from_file(NEEDLE_MODEL, llama_model_default_params()));
    Result<std::unique_ptr<TextReader>> reader = TextReader::create(model_.get(), 512, 1);
    ASSERT_TRUE(reader) << reader.error().message;
    reader_ = std::move(*reader);
    worker_ = std::make_unique<ReadingWorker>(*reader_, limits);
    for (std::size_t i = 0; i < n_texts; ++i) {
      texts_.emplace_back(std::size_t{16}, static_cast<Token>(i % 100 + 5));
    }
    server_ = serve([this](HttpExchange& exchange) { return answer(exchange); });
    ASSERT_NE(server_, nullptr);
  }
  asio::awaitable<void> answer(HttpExchange& exchange) {
    const Client client{.name = "a"};
    const auto read = co_await worker_->read(exchange, client, texts_);
    if (!read) last_error_ = read.error().code;
    const std::string text = read ? format_text("<{} rows>", read->rows.size()) : "<refused>";
    (void)co_await exchange.reply({.body = text});
  }

  llama_model_ptr model_;
  std::unique_ptr<TextReader> reader_;
  std::vector<std::vector<Token>> texts_;
  std::unique_ptr<ReadingWorker> worker_;
  std::atomic<Code> last_error_ = Code::kIo;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ReadingWorkerTest, SeveralTextsAreOneBatch) {
  start(32);
  const RawClient client(server_->port());
  client.send(kAsk);
  EXPECT_TRUE(client.read(">").ends_with("<32 rows>"));
  const ReadingStats stats = worker_->stats();
  EXPECT_EQ(stats.n_texts, 32);
  EXPECT_EQ(stats.n_tokens, 32 * 16);
  EXPECT_EQ(stats.n_batches, 1);
  EXPECT_EQ(stats.n_waiting, 0U);
  EXPECT_GT(stats.seconds, 0);
}

TEST_F(ReadingWorkerTest, ARequestWithoutRoomBesideOthersIsRefusedAndRoomComesBack) {
  ReadingLimits limits;
  limits.requests_max = 1;
  start(600, limits);
  const RawClient first(server_->port());
  first.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return worker_->stats().n_waiting > 0; }));
  const RawClient second(server_->port());
  second.send(kAsk);
  EXPECT_TRUE(second.read(">").ends_with("<refused>"));
  EXPECT_EQ(last_error_.load(), Code::kOverloaded);
  EXPECT_TRUE(first.read(">").ends_with("<600 rows>"));
  // The answer's own room is free when the server has noticed that it was sent.
  EXPECT_TRUE(comes_true([&] {
    second.send(kAsk);
    return second.read(">").ends_with("<600 rows>");
  }));
}

TEST_F(ReadingWorkerTest, WhatOneRequestHoldsIsLimitedOnlyBesideOthers) {
  ReadingLimits limits;
  limits.bytes_max = 1;
  start(8, limits);
  const RawClient client(server_->port());
  client.send(kAsk);
  EXPECT_TRUE(client.read(">").ends_with("<8 rows>"));
}

TEST_F(ReadingWorkerTest, TextsOfAClientThatHasGoneAreNotRead) {
  start(600);
  RawClient client(server_->port());
  client.send(kAsk);
  ASSERT_TRUE(comes_true([&] { return worker_->stats().n_waiting > 0; }));
  client.close();
  EXPECT_TRUE(comes_true([&] { return worker_->stats().n_waiting == 0; }));
  EXPECT_LT(worker_->stats().n_texts, 600);
  EXPECT_TRUE(comes_true([&] { return last_error_ == Code::kCancelled; }));
}

}  // namespace
}  // namespace slipstream
