#include "bench/quality/tool_trial.h"

#include <gtest/gtest.h>

namespace slipstream::quality {
namespace {

ChatAnswer call(const std::string& name, const std::string& arguments, bool complete = true) {
  ChatAnswer answer;
  answer.calls.push_back({.name = name, .arguments = arguments, .complete = complete});
  return answer;
}

TEST(ToolTrial, ACallIsJudgedStepByStep) {
  const ToolCallOutcome right =
      judge_tool_call(call("lookup_name", R"({"first": "amber"})"), "amber");
  EXPECT_TRUE(right.is_call && right.right_name && right.valid && right.as_expected);

  const ToolCallOutcome other =
      judge_tool_call(call("lookup_name", R"({"first": "ember"})"), "amber");
  EXPECT_TRUE(other.valid);
  EXPECT_FALSE(other.as_expected);

  const ToolCallOutcome wrong_type =
      judge_tool_call(call("lookup_name", R"({"first": 5})"), "amber");
  EXPECT_TRUE(wrong_type.right_name);
  EXPECT_FALSE(wrong_type.valid);

  EXPECT_FALSE(judge_tool_call(call("lookup_name", R"({"second": "amber"})"), "amber").valid);
  EXPECT_FALSE(judge_tool_call(call("lookup_name", R"({"first": "amber")"), "amber").valid);
  EXPECT_FALSE(judge_tool_call(call("find", R"({"first": "amber"})"), "amber").right_name);
  EXPECT_FALSE(
      judge_tool_call(call("lookup_name", R"({"first": "amber"})", false), "amber").is_call);
}

TEST(ToolTrial, TextIsNoCall) {
  ChatAnswer answer;
  answer.content = "It is amber lantern.";
  const ToolCallOutcome outcome = judge_tool_call(answer, "amber");
  EXPECT_FALSE(outcome.is_call || outcome.valid);
  EXPECT_EQ(outcome.answer, answer.content);
}

}  // namespace
}  // namespace slipstream::quality
