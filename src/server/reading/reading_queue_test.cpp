#include "server/reading/reading_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace slipstream {
namespace {

using testing::ElementsAre;

class ReadingQueueTest : public testing::Test {
 protected:
  using Request = std::shared_ptr<const ReadingRequest>;

  // A request of n texts with so many tokens each.
  Request add(const std::string& client, std::size_t n_texts, std::size_t n_tokens,
              int priority = 1) {
    auto request = std::make_shared<const ReadingRequest>(
        ReadingRequest{.client = client,
                       .priority = priority,
                       .texts = std::vector(n_texts, std::vector<Token>(n_tokens))});
    queue_.add(request);
    return request;
  }
  // Of a batch of at most 4 texts and 100 tokens, or one longer text.
  std::vector<ReadingQueue::Text> take() {
    return queue_.take_batch([](std::size_t n_texts, std::size_t n_tokens, std::size_t n) {
      return n_texts == 0 || (n_texts < 4 && n_tokens + n <= 100);
    });
  }
  // The clients of the next batch.
  std::vector<std::string> take_clients() {
    std::vector<std::string> clients;
    for (const ReadingQueue::Text& text : take()) clients.push_back(text.request->client);
    return clients;
  }
  static std::vector<std::size_t> numbers(const std::vector<ReadingQueue::Text>& batch) {
    std::vector<std::size_t> numbers;
    for (const ReadingQueue::Text& text : batch) numbers.push_back(text.idx);
    return numbers;
  }

  ReadingQueue queue_;
};

TEST_F(ReadingQueueTest, TextsOfARequestStayInOrder) {
  add("a", 6, 10);
  EXPECT_THAT(numbers(take()), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(queue_.n_texts(), 2U);
  EXPECT_THAT(numbers(take()), ElementsAre(4, 5));
  EXPECT_THAT(take(), testing::IsEmpty());
}

TEST_F(ReadingQueueTest, ABatchHasAsManyTokensAsFitAndALongTextIsAlone) {
  add("a", 2, 60);
  EXPECT_THAT(numbers(take()), ElementsAre(0));
  EXPECT_THAT(numbers(take()), ElementsAre(1));
  add("a", 2, 5000);
  EXPECT_THAT(numbers(take()), ElementsAre(0));
  EXPECT_EQ(queue_.n_texts(), 1U);
}

TEST_F(ReadingQueueTest, RequestsOfSeveralClientsShareABatch) {
  add("a", 100, 10);
  (void)take();
  add("b", 1, 10);
  EXPECT_THAT(take_clients(), testing::Contains("b"));
}

TEST_F(ReadingQueueTest, ALongRequestCostsOthersABatchAndNotItsLength) {
  add("a", 2000, 100);
  for (int i = 0; i < 500; ++i) (void)take();
  add("b", 3, 100);
  // What a had before counts for nothing: they take turns from here.
  std::vector<std::string> turns;
  for (int i = 0; i < 6; ++i) turns.push_back(take_clients().front());
  EXPECT_EQ(std::ranges::count(turns, "b"), 3);
}

TEST_F(ReadingQueueTest, AShortRequestDoesNotWaitForALongOneOfTheSameClient) {
  add("a", 2000, 100);
  for (int i = 0; i < 10; ++i) (void)take();
  const Request second = add("a", 1, 100);
  bool was_taken = false;
  for (int i = 0; i < 2; ++i) was_taken = was_taken || take().front().request == second;
  EXPECT_TRUE(was_taken);
}

TEST_F(ReadingQueueTest, AHigherPriorityHasMoreTurns) {
  add("a", 1000, 100, 1);
  add("b", 1000, 100, 3);
  int n_of_b = 0;
  for (int i = 0; i < 400; ++i) n_of_b += take_clients().front() == "b" ? 1 : 0;
  EXPECT_NEAR(n_of_b, 300, 2);
}

TEST_F(ReadingQueueTest, ARequestThatIsNotWantedAnyMoreIsForgotten) {
  const Request first = add("a", 10, 10);
  add("a", 1, 10);
  (void)take();
  queue_.remove(*first);
  EXPECT_LE(queue_.n_texts(), 1U);
  queue_.remove(*first);  // again: nothing happens
  while (!take().empty()) {
  }
  EXPECT_EQ(queue_.n_texts(), 0U);
}

}  // namespace
}  // namespace slipstream
