#include "base/bounded_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace slipstream {
namespace {

TEST(BoundedQueue, KeepsOrderAndRefusesWhenFull) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  const Result<void> full = queue.try_push(3);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kOverloaded);
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_TRUE(queue.try_push(4));
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 4);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BoundedQueue, DrainsAfterCloseAndThenReturnsNothing) {
  BoundedQueue<std::unique_ptr<int>> queue(4);
  ASSERT_TRUE(queue.try_push(std::make_unique<int>(7)));
  queue.close();
  const Result<void> closed = queue.try_push(nullptr);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kCancelled);
  EXPECT_THAT(queue.pop(), testing::Optional(testing::Pointee(7)));
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, StopRequestWakesAWaitingConsumer) {
  BoundedQueue<int> queue(1);
  std::atomic<bool> returned_nothing = false;
  {
    const std::jthread consumer(
        [&](const std::stop_token& stop) { returned_nothing = queue.pop(stop) == std::nullopt; });
  }  // the jthread asks for the stop and joins: this line is reached only if pop() woke up
  EXPECT_TRUE(returned_nothing);
}

// Every item arrives exactly once, and each producer's items arrive in its own order.
TEST(BoundedQueue, ManyProducersAndConsumersLoseNothing) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 3;
  constexpr int kPerProducer = 2000;
  struct Item {
    int producer;
    int number;
  };
  BoundedQueue<Item> queue(16);
  std::array<std::vector<Item>, kConsumers> received;
  {
    std::vector<std::jthread> consumers;
    for (std::vector<Item>& mine : received) {
      consumers.emplace_back([&queue, &mine] {
        while (std::optional<Item> item = queue.pop()) mine.push_back(*item);
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < kProducers; ++p) {
        producers.emplace_back([&queue, p] {
          for (int i = 0; i < kPerProducer; ++i) {
            while (!queue.try_push({.producer = p, .number = i})) std::this_thread::yield();
          }
        });
      }
    }
    queue.close();
  }
  std::array<std::vector<int>, kProducers> n_seen;
  for (std::vector<int>& counts : n_seen) counts.resize(kPerProducer);
  for (const std::vector<Item>& mine : received) {
    std::array<int, kProducers> last;
    last.fill(-1);
    for (const Item& item : mine) {
      const auto p = static_cast<std::size_t>(item.producer);
      EXPECT_GT(item.number, last.at(p));
      last.at(p) = item.number;
      ++n_seen.at(p).at(static_cast<std::size_t>(item.number));
    }
  }
  for (const std::vector<int>& counts : n_seen) {
    EXPECT_EQ(counts, std::vector<int>(kPerProducer, 1));
  }
}

}  // namespace
}  // namespace slipstream
