#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "bench/quality/work/arithmetic.h"
#include "bench/quality/work/extraction.h"
#include "bench/quality/work/facts.h"
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
    const std::size_t begin = task.message.find("a = ");
    const std::string chain = task.message.substr(begin, task.message.find('\n', begin) - begin);
    const int value = value_of(chain, asked);
    EXPECT_EQ(task.right, std::to_string(value)) << task.message;
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 99);
    EXPECT_TRUE(task.judge("It is " + task.right + ".").right);
    EXPECT_FALSE(task.judge("It is " + std::to_string(value + 1) + ".").right);
    EXPECT_TRUE(task.beginning.ends_with("?\nAnswer:"));
  }
}

TEST(Arithmetic, ChainsHaveSeveralLengthsAndStandWithinText) {
  const std::vector<WorkTask> tasks = make_arithmetic(8, some_hay);
  std::vector<std::ptrdiff_t> n_equations;
  for (const WorkTask& task : tasks) n_equations.push_back(std::ranges::count(task.message, '='));
  EXPECT_EQ(n_equations, (std::vector<std::ptrdiff_t>{3, 3, 4, 4, 5, 5, 7, 7}));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::size_t chain = tasks[i].message.find("a = ");
    EXPECT_EQ(tasks[i].message.substr(0, chain).contains("x96"), i % 2 == 1) << tasks[i].message;
    EXPECT_EQ(tasks[i].message.substr(chain).contains("x256"), i % 2 == 1) << tasks[i].message;
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

TEST(Facts, LeadToTheRightAnswer) {
  const std::vector<WorkTask> tasks = make_facts(8, some_hay);
  ASSERT_EQ(tasks.size(), 8U);
  for (const WorkTask& task : tasks) {
    const auto after = [&](const std::string& words) {
      const std::size_t at = task.message.find(words);
      EXPECT_NE(at, std::string::npos) << words << ": " << task.message;
      const std::size_t begin = at + words.size();
      return task.message.substr(begin, task.message.find_first_of(" .", begin) - begin);
    };
    const bool asks_for_land = task.message.contains("In which land is the ");
    const std::string key =
        after(asks_for_land ? "In which land is the " : "In which town is the ");
    const std::string owner = after("The " + key + " key is in the house of ");
    const std::string town = after("The house of " + owner + " is in the town of ");
    const std::string right =
        asks_for_land ? after("The town of " + town + " is in the land of ") : town;
    EXPECT_EQ(task.right, right) << task.message;
    EXPECT_TRUE(task.judge("It is " + right + ".").right);
    EXPECT_FALSE(task.judge("It is " + owner + ".").valid);
    EXPECT_TRUE(task.beginning.ends_with("?\nAnswer:"));
  }
}

TEST(Facts, StandAmongTextOfTwoLengths) {
  std::vector<std::size_t> n_tokens;
  (void)make_facts(2, [&](std::size_t /*place*/, std::size_t n) {
    n_tokens.push_back(n);
    return std::string("hay");
  });
  EXPECT_EQ(n_tokens.size(), 12U);  // six facts for a question of two hops
  EXPECT_EQ(n_tokens.front(), 256U / 6);
  EXPECT_EQ(n_tokens.back(), 512U / 6);
}

TEST(Facts, AnAnswerThatNamesSeveralIsNotRight) {
  EXPECT_TRUE(judge_name("The land of Amber", "amber", {"cedar", "coral"}).right);
  const Mark both = judge_name("amber or cedar", "amber", {"cedar", "coral"});
  EXPECT_TRUE(both.valid);
  EXPECT_FALSE(both.right);
  EXPECT_TRUE(judge_name("coral", "amber", {"cedar", "coral"}).valid);
  EXPECT_FALSE(judge_name("I do not know", "amber", {"cedar", "coral"}).valid);
}

TEST(Extraction, TheRightObjectIsInTheNote) {
  const std::vector<WorkTask> tasks = make_extraction(12, some_hay);
  ASSERT_EQ(tasks.size(), 12U);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const WorkTask& task = tasks[i];
    const Json right = Json::parse(task.right);
    ASSERT_EQ(right.size(), 3 + i % 3);
    const std::string order = right["name"].get<std::string>() + " from " +
                              right["city"].get<std::string>() + " ordered ";
    const std::size_t at = task.message.find(order);
    ASSERT_NE(at, std::string::npos) << task.message;
    EXPECT_EQ(task.message.find(order, at + 1), std::string::npos) << task.message;
    const std::string rest = task.message.substr(at, task.message.find('.', at) - at);
    EXPECT_TRUE(rest.contains(" " + right["item"].get<std::string>() + " for ")) << rest;
    EXPECT_TRUE(rest.contains(" ordered " + right.value("count", Json("")).dump()) ||
                !right.contains("count"))
        << rest;
    EXPECT_TRUE(rest.contains(" for " + right.value("price", Json("")).dump() + " euros") ||
                !right.contains("price"))
        << rest;
    EXPECT_EQ(task.message.contains("hay"), i % 2 == 1);
    EXPECT_TRUE(task.message.contains(R"("required":["name","city","item")"));
    EXPECT_TRUE(task.judge("```json\n" + right.dump(2) + "\n```\nThat {is} it.").right);
    Json wrong = right;
    wrong["item"] = "nothing";
    EXPECT_TRUE(task.judge(wrong.dump()).valid);
    EXPECT_FALSE(task.judge(wrong.dump()).right);
  }
  EXPECT_EQ(std::ranges::count(tasks[4].message.substr(0, tasks[4].message.find('\n')), '.'), 3);
}

TEST(Extraction, TheFirstObjectCounts) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}}}, {"b", {{"type", "object"}}}}},
                       {"required", {"a"}}};
  const auto judge = [&](const char* answer) { return judge_object(answer, schema, {{"a", 1}}); };
  EXPECT_TRUE(judge(R"(Here: {"a": 1} and {"a": 2})").right);
  EXPECT_TRUE(judge(R"({"a": 1, "b": {}})").valid);  // an object within it
  EXPECT_FALSE(judge(R"({"a": 1, "b": {}})").right);
  EXPECT_FALSE(judge(R"({"a": 2} {"a": 1})").right);
  EXPECT_FALSE(judge(R"({"a": "1"})").valid);
  EXPECT_FALSE(judge(R"({"a": 1)").valid);
  EXPECT_FALSE(judge("a: 1").valid);
  EXPECT_FALSE(judge((std::string(5000, '{') + std::string(5000, '}')).c_str()).valid);
  EXPECT_TRUE(
      judge_object(R"({"y": 2, "x": 1})", {{"type", "object"}}, {{"x", 1}, {"y", 2}}).right);
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
