// Replays the corpus (tests/server/chat/corpus): what models write, and what a client must see.
// Each entry is parsed whole, cut in two at every byte, byte by byte, and at random cuts. The
// result must always be the same.
#include "server/output/output_parser.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/format.h"
#include "server/json.h"
#include "server/output/chat_answer.h"

namespace slipstream {
namespace {

struct Entry {
  std::string file;
  std::string title;
  ChatFormat format;
  ToolSet tools;
  bool starts_in_reasoning;
  std::string output;
  Json expected;
};

std::vector<Entry> read_corpus() {
  std::vector<Entry> entries;
  for (const auto& path : std::filesystem::directory_iterator(CHAT_CORPUS)) {
    const Json file = Json::parse(std::ifstream(path.path()));
    const ChatFormat format{
        .tool_calls = find_tool_call_family(file.at("tool_calls").get<std::string>()).value(),
        .reasoning = find_reasoning_family(file.at("reasoning").get<std::string>()).value()};
    for (const Json& entry : file.at("entries")) {
      entries.push_back(
          {.file = path.path().filename(),
           .title = entry.at("title"),
           .format = format,
           .tools = ToolSet(entry.value("no_tools", false) ? Json() : file.at("tools")),
           .starts_in_reasoning = entry.value("starts_in_reasoning", false),
           .output = entry.at("output"),
           .expected = entry.at("expect")});
    }
  }
  return entries;
}

const std::vector<Entry>& corpus() {
  static const std::vector<Entry> kEntries = read_corpus();
  return kEntries;
}

ChatAnswer parse(const Entry& entry, const std::vector<std::string_view>& pieces) {
  OutputParser parser({.format = entry.format,
                       .tools = entry.tools,
                       .starts_in_reasoning = entry.starts_in_reasoning});
  ChatAnswer answer;
  for (const std::string_view piece : pieces) answer.add(parser.push(piece));
  answer.add(parser.finish());
  return answer;
}

TEST(OutputParser, ParsesTheCorpusAsExpected) {
  EXPECT_GE(corpus().size(), 120U);
  for (const Entry& entry : corpus()) {
    SCOPED_TRACE(entry.file + ": " + entry.title + "\n" + entry.output);
    const ChatAnswer answer = parse(entry, {entry.output});
    EXPECT_EQ(answer.content, entry.expected.value("content", ""));
    EXPECT_EQ(answer.reasoning, entry.expected.value("reasoning", ""));
    const Json calls = entry.expected.value("calls", Json::array());
    ASSERT_EQ(answer.calls.size(), calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(answer.calls[i].name, calls[i].at("name").get<std::string>());
      const Json arguments = Json::parse(answer.calls[i].arguments, nullptr, false);
      EXPECT_EQ(nlohmann::json(arguments), nlohmann::json(calls[i].at("arguments")))
          << answer.calls[i].arguments;
      EXPECT_EQ(answer.calls[i].complete, calls[i].value("complete", true));
    }
  }
}

// Models that were trained to think do so whatever their template says.
TEST(OutputParser, AnAnswerThatBeginsWithThinkingIsUnderstoodInEveryFamily) {
  for (int i = 0; i < kToolCallFamilies; ++i) {
    const auto family = static_cast<ToolCallFamily>(i);
    if (family == ToolCallFamily::kHarmony) continue;  // has its own markup
    SCOPED_TRACE(name(family));
    const auto parsed = [&](std::string_view text) {
      OutputParser parser({.format = {.tool_calls = family}});
      ChatAnswer answer;
      answer.add(parser.push(text));
      answer.add(parser.finish());
      return answer;
    };
    EXPECT_EQ(parsed("<think>\na\n</think>\n\nb").reasoning, "a");
    EXPECT_EQ(parsed("<think>\na\n</think>\n\nb").content, "b");
    EXPECT_EQ(parsed("the tags <think> and </think>").content, "the tags <think> and </think>");
  }
}

TEST(OutputParser, CuttingMakesNoDifference) {
  std::mt19937 random(1);
  for (const Entry& entry : corpus()) {
    SCOPED_TRACE(entry.file + ": " + entry.title + "\n" + entry.output);
    const std::string_view text = entry.output;
    const ChatAnswer whole = parse(entry, {text});
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
      bytes.push_back(text.substr(i, 1));
      ASSERT_EQ(parse(entry, {text.substr(0, i), text.substr(i)}), whole) << "cut at " << i;
    }
    ASSERT_EQ(parse(entry, bytes), whole) << "byte by byte";
    for (int round = 0; round < 20; ++round) {
      std::vector<std::string_view> pieces;
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t n = 1 + random() % 9;
        pieces.push_back(text.substr(i, n));
        i += n;
      }
      ASSERT_EQ(parse(entry, pieces), whole);
    }
  }
}

TEST(OutputParser, TextIsHeldBackOnlyWhileItMayBeMarkup) {
  OutputParser parser(
      {.format = {.tool_calls = ToolCallFamily::kHermes},
       .tools = ToolSet(Json::parse(R"([{"type": "function", "function": {"name": "f"}}])"))});
  const auto text = [&parser](std::string_view piece) {
    ChatAnswer answer;
    answer.add(parser.push(piece));
    return answer.content;
  };
  EXPECT_EQ(text("a < b"), "a < b");
  EXPECT_EQ(text("<tool"), "");
  EXPECT_EQ(text("box>"), "<toolbox>");
  EXPECT_EQ(text("\n"), "") << "it would belong to a call";
  EXPECT_EQ(text("x"), "\nx");
}

TEST(OutputParser, ArgumentsStreamAsTheyArrive) {
  OutputParser parser({.format = {.tool_calls = ToolCallFamily::kMistral}});
  EXPECT_TRUE(parser.push("[TOOL_CALLS]f[ARGS]").empty());
  const ChatDeltas deltas = parser.push(R"({"city": "Par)");
  ASSERT_EQ(deltas.size(), 2U);
  EXPECT_EQ(deltas[0].kind, ChatDelta::Kind::kCallBegin);
  EXPECT_EQ(deltas[1].text, R"({"city": "Par)");
  EXPECT_EQ(parser.push("is").at(0).text, "is");
}

// Arguments in a string may end before their object does. That is remembered until the name comes.
TEST(OutputParser, ArgumentsBeforeTheNameMayBeIncomplete) {
  const ToolSet tools(Json::parse(R"([{"type": "function", "function": {"name": "f"}}])"));
  const auto is_complete = [&](std::string_view call) {
    OutputParser parser({.format = {.tool_calls = ToolCallFamily::kHermes}, .tools = tools});
    ChatAnswer answer;
    answer.add(parser.push(format_text("<tool_call>{}</tool_call>", call)));
    answer.add(parser.finish());
    EXPECT_EQ(answer.calls.size(), 1U) << call;
    return !answer.calls.empty() && answer.calls[0].complete;
  };
  EXPECT_TRUE(is_complete(R"({"arguments": "{\"a\": 1}", "name": "f"})"));
  EXPECT_FALSE(is_complete(R"({"name": "f", "arguments": "{\"a\": [1"})"));
  EXPECT_FALSE(is_complete(R"({"arguments": "{\"a\": [1", "name": "f"})"));
}

// The CPU seconds for parsing n_text bytes of each start of markup, repeated, in every family.
// Checks that no text is lost.
double seconds_for_hostile_output(std::size_t n_text) {
  const ToolSet tools(Json::parse(R"([{"type": "function", "function": {"name": "f"}}])"));
  const std::clock_t start = std::clock();
  for (int i = 0; i < kToolCallFamilies; ++i) {
    const ToolCallFormat& format = tool_call_format(static_cast<ToolCallFamily>(i));
    std::vector<std::string> units = {"<", "{", "[", "`", "{\"a\":", "<think>"};
    for (const CallOpening& opening : format.openings) {
      units.emplace_back(opening.text);
      units.push_back(std::string(opening.text) + "{\"name\": \"f\", \"arguments\": {\"a\":\"");
      units.push_back(std::string(opening.text) + "f");
    }
    for (const std::string& unit : units) {
      std::string text;
      while (text.size() < n_text) text += unit;
      OutputParser parser(
          {.format = {.tool_calls = format.family, .reasoning = ReasoningFamily::kThink},
           .tools = tools});
      std::size_t n_bytes = 0;
      for (std::size_t at = 0; at < text.size(); at += 4) {
        for (const ChatDelta& delta : parser.push(std::string_view(text).substr(at, 4))) {
          n_bytes += delta.text.size();
        }
      }
      for (const ChatDelta& delta : parser.finish()) n_bytes += delta.text.size();
      if (unit == "<") {
        EXPECT_EQ(n_bytes, text.size()) << format.name;
      }
    }
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(OutputParser, HostileOutputTakesLinearTime) {
  constexpr std::size_t kFew = std::size_t{1} << 12;
  (void)seconds_for_hostile_output(kFew);  // warms the caches
  // If time were quadratic, eight times the text would take 64 times as long.
  EXPECT_LT(seconds_for_hostile_output(8 * kFew), 24 * seconds_for_hostile_output(kFew));
}

TEST(OutputParser, TellsNothingAfterTheOnlyCall) {
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  const std::string_view call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  const std::string text = "Well." + std::string(call) + std::string(call) + "Done.";
  for (const bool ends_with_call : {false, true}) {
    OutputParser parser({.format = {.tool_calls = ToolCallFamily::kHermes},
                         .tools = ToolSet(tools),
                         .ends_with_call = ends_with_call});
    ChatAnswer answer;
    answer.add(parser.push(text));
    answer.add(parser.finish());
    EXPECT_EQ(answer.calls.size(), ends_with_call ? 1 : 2);
    EXPECT_EQ(answer.content, ends_with_call ? "Well." : "Well.Done.");
    EXPECT_EQ(parser.is_over(), ends_with_call);
  }
}

}  // namespace
}  // namespace slipstream
