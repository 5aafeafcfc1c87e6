#include "bench/child.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace slipstream::bench {
namespace {

using nlohmann::json;

class ChildTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(log_); }
  // A shell for a child: the task is its first line of input.
  Result<json> ask(const std::string& script, const json& task = {{"number", 7}}) {
    return ask_child({.command = {"/bin/sh", "-c", script}, .log = log_}, task,
                     [this](double done) { progress_.push_back(done); });
  }
  const std::filesystem::path log_ =
      std::filesystem::temp_directory_path() / ("child_test_" + std::to_string(getpid()) + ".log");
  std::vector<double> progress_;
};

TEST_F(ChildTest, GivesTheTaskAndTakesTheResult) {
  const Result<json> answer = ask("read task; echo \"{\\\"result\\\": $task}\"");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, json({{"number", 7}}));
}

TEST_F(ChildTest, TellsProgressAndOverlooksChatter) {
  const Result<json> answer =
      ask("echo '{\"progress\": 0.25}'; echo loading; echo '{\"progress\": 0.5}'; "
          "echo '{\"result\": 1}'");
  ASSERT_TRUE(answer);
  EXPECT_EQ(progress_, (std::vector{0.25, 0.5}));
}

TEST_F(ChildTest, SaysWhatTheChildSays) {
  const Result<json> answer = ask("echo '{\"error\": \"no such scheme\"}'; exit 1");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no such scheme");
}

TEST_F(ChildTest, SaysHowAChildDiedAndWhatItLogged) {
  const Result<json> answer = ask("echo trouble >&2; kill -SEGV $$");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("signal 11"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find("trouble"), std::string::npos) << answer.error().message;
}

TEST_F(ChildTest, AProgramThatIsNotThereIsAnError) {
  const Result<json> answer = ask_child({.command = {"/no/such/program"}, .log = log_}, {}, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kNotFound);
}

TEST_F(ChildTest, AChildThatDoesNotReadIsNotWaitedFor) {
  const Result<json> answer = ask("exec 0<&-; exit 3");
  ASSERT_FALSE(answer);
}

}  // namespace
}  // namespace slipstream::bench
