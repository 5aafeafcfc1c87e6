#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "bench/quality/work/arithmetic.h"
#include "bench/quality/work/work_report.h"

namespace slipstream::quality {
namespace {

std::string some_hay(std::size_t place, std::size_t n_tokens) {
  return "hay" + std::to_string(place) + "x" + std::to_string(n_tokens);
}

// Computes a chain as a reader would: "a = 3. b = a + 4." and so on.
int value_of(const std::string& chain, const std::string& asked) {
  std::map<std::string, int> values;
  std::istringstream words(chain);
  std::string name;
  std::string equals;
  std::string first;
  while (words >> name >> equals >> first && equals == "=") {
    if (first.ends_with('.')) {
      values[name] = std::stoi(first);
      continue;
    }
    std::string sign;
    std::string second;
    words >> sign >> second;
    const int operand = std::stoi(second);
    values[name] = sign == "+"   ? values[first] + operand
                   : sign == "-" ? values[first] - operand
                                 : values[first] * operand;
  }
  return values.at(asked);
}

TEST(Arithmetic, TheRightAnswerIsTheChainsResult) {
  const std::vector<WorkTask> tasks = make_arithmetic(40, some_hay);
  ASSERT_EQ(tasks.size(), 40U);
  for (const WorkTask& task : tasks) {
    const std::string asked(1, task.message[task.message.find("value of ") + 9]);
    const std::string chain = task.message.substr(0, task.message.find('\n'));
    const int value = value_of(chain, asked);
    EXPECT_EQ(task.right, std::to_string(value)) << task.message;
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 99);
    EXPECT_TRUE(task.judge("It is " + task.right + ".").right);
    EXPECT_FALSE(task.judge("It is " + std::to_string(value + 1) + ".").right);
    EXPECT_TRUE(task.beginning.ends_with("?\nAnswer:"));
  }
}

TEST(Arithmetic, ChainsHaveSeveralLengthsAndTextBetween) {
  const std::vector<WorkTask> tasks = make_arithmetic(8, some_hay);
  std::vector<std::ptrdiff_t> n_equations;
  for (const WorkTask& task : tasks) n_equations.push_back(std::ranges::count(task.message, '='));
  EXPECT_EQ(n_equations, (std::vector<std::ptrdiff_t>{3, 3, 4, 4, 5, 5, 7, 7}));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].message.contains("hay"), i % 2 == 1) << tasks[i].message;
    EXPECT_EQ(tasks[i].beginning.contains("hay"), i % 2 == 1) << tasks[i].beginning;
  }
}

TEST(Arithmetic, TheSameTasksEveryTime) {
  const auto of = [](int n) { return make_arithmetic(n, some_hay); };
  EXPECT_EQ(of(8)[5].message, of(8)[5].message);
  EXPECT_EQ(of(8)[5].message, of(20)[5].message);
  EXPECT_NE(of(8)[0].message, of(20)[8].message);
}

TEST(Arithmetic, TheLastNumberCounts) {
  EXPECT_TRUE(judge_number("12", 12).right);
  EXPECT_TRUE(judge_number("b = 7, so c = 7 + 5 = 12.", 12).right);
  EXPECT_TRUE(judge_number("c is 12.0", 12).right);
  EXPECT_TRUE(judge_number("c...12", 12).right);
  EXPECT_FALSE(judge_number("12 or 13", 12).right);
  EXPECT_FALSE(judge_number("112", 12).right);
  EXPECT_FALSE(judge_number("12.5", 12).right);
  EXPECT_FALSE(judge_number("0.12", 12).right);
  EXPECT_FALSE(judge_number("-12", 12).right);
  EXPECT_TRUE(judge_number("-12", 12).valid);
  EXPECT_FALSE(judge_number("twelve", 12).valid);
  EXPECT_FALSE(judge_number("", 12).valid);
}

TEST(WorkReport, CountsWhatIsKeptOfF16) {
  const auto answer = [](const char* text, bool right) {
    return WorkAnswer{
        .kind = "arithmetic", .expected = "1", .answer = text, .valid = true, .right = right};
  };
  const std::vector<WorkAnswer> base = {answer("1", true), answer("1", true), answer("2", false)};
  const std::vector<WorkAnswer> other = {answer("It is 1", true), answer("3", false),
                                         answer("1", true)};
  const Json found = work_of(other, base)["arithmetic"];
  EXPECT_EQ(found["n"], 3);
  EXPECT_EQ(found["n_valid"], 3);
  EXPECT_EQ(found["n_right"], 2);
  EXPECT_EQ(found["n_same"], 0);
  EXPECT_EQ(found["n_base_right"], 2);
  EXPECT_EQ(found["n_kept"], 1);
  EXPECT_EQ(found["answers"].size(), 3U);
  EXPECT_EQ(work_of(base, base)["arithmetic"]["n_same"], 3);
  EXPECT_TRUE(work_of({}, {}).is_null());
}

}  // namespace
}  // namespace slipstream::quality
