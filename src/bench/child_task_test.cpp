#include "bench/child_task.h"

#include <gtest/gtest.h>

namespace slipstream::bench {
namespace {

using nlohmann::json;

// Uses a shell as the child.
Result<json> ask(const std::string& script, std::vector<double>* progress = nullptr) {
  return ask_child({"/bin/sh", "-c", script}, {{"number", 7}}, [&](double done) {
    if (progress != nullptr) progress->push_back(done);
  });
}

TEST(ChildTask, GivesTheTaskAndTakesTheResult) {
  const Result<json> answer = ask("printf '{\"result\": %s}' \"$(cat)\"");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, json({{"number", 7}}));
}

TEST(ChildTask, TellsProgress) {
  std::vector<double> progress;
  ASSERT_TRUE(
      ask("echo progress 0.25 >&2; echo loading >&2; echo progress 0.5 >&2; "
          "echo '{\"result\": 1}'",
          &progress));
  EXPECT_EQ(progress, (std::vector{0.25, 0.5}));
}

TEST(ChildTask, SaysWhatTheChildSays) {
  const Result<json> answer = ask("echo '{\"error\": \"no such scheme\"}'; exit 1");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no such scheme");
}

TEST(ChildTask, SaysHowAChildDiedAndWhatItComplainedOf) {
  const Result<json> answer = ask("echo trouble >&2; kill -SEGV $$");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("signal 11"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find("trouble"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace slipstream::bench
