#include "cli/chat/session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "cli/chat/answer_reader.h"
#include "cli/chat/line_editor.h"

namespace slipstream::chat {
namespace {

TEST(Session, RequestHasSystemSettingsAndMessages) {
  Session session("needle");
  session.set_system("Be brief.");
  ASSERT_TRUE(session.set("temperature", "0.5"));
  ASSERT_TRUE(session.set("max_tokens", "64"));
  ASSERT_TRUE(session.set("thinking", "off"));
  session.say("Hello");
  session.take_answer("Hi");
  session.say("Again");
  EXPECT_EQ(
      session.request().dump(),
      R"({"temperature":0.5,"max_tokens":64,"chat_template_kwargs":{"enable_thinking":false},)"
      R"("model":"needle","messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},)"
      R"({"role":"user","content":"Again"}]})");
}

TEST(Session, SettingsAreCheckedAndTakenBack) {
  Session session("needle");
  using Setting = std::pair<const char*, const char*>;
  for (const auto& [name, value] :
       {Setting{"temprature", "1"}, Setting{"temperature", "hot"}, Setting{"temperature", "-1"},
        Setting{"temperature", "nan"}, Setting{"top_k", "1.5"}, Setting{"max_tokens", "0"},
        Setting{"thinking", "maybe"}, Setting{"seed", "1x"}}) {
    EXPECT_FALSE(session.set(name, value)) << name << " " << value;
  }
  EXPECT_TRUE(session.settings().empty());
  EXPECT_NE(session.set("temprature", "1").error().message.find("temperature"), std::string::npos);
  ASSERT_TRUE(session.set("seed", "7"));
  ASSERT_TRUE(session.set("seed", ""));
  EXPECT_TRUE(session.settings().empty());
}

TEST(Session, AnAnswerCanBeDropped) {
  Session session("needle");
  EXPECT_FALSE(session.drop_answer());
  session.say("Hello");
  session.take_answer("Hi");
  EXPECT_TRUE(session.drop_answer());
  EXPECT_EQ(session.n_messages(), 1U);
  EXPECT_TRUE(session.drop_answer());  // of a question without an answer
  EXPECT_EQ(session.n_messages(), 1U);
}

TEST(Session, FilesComeBackAndOthersAreRefused) {
  const std::string path = testing::TempDir() + "/slipstream_session_test.json";
  std::filesystem::remove(path);
  Session session("needle");
  session.set_system("Be brief.");
  ASSERT_TRUE(session.set("top_p", "0.9"));
  session.say("Hello");
  ASSERT_TRUE(session.save(path));
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  Session loaded("needle");
  ASSERT_TRUE(loaded.load(path));
  EXPECT_EQ(loaded.request(), session.request());
  for (const char* text : {"", "[]", R"({"messages": [{"role": "root", "content": "x"}]})",
                           R"({"messages": [{"role": "user", "content": 7}]})"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(loaded.load(path)) << text;
    EXPECT_EQ(loaded.n_messages(), 1U);
  }
  std::filesystem::remove(path);
}

TEST(AnswerReader, GivesPiecesAndCounts) {
  std::string seen;
  const std::function<void(const Piece&)> on_piece = [&](const Piece& piece) {
    seen += std::to_string(static_cast<int>(piece.kind)) + piece.text + "|";
  };
  AnswerReader reader(on_piece);
  reader.take(R"(data: {"choices":[{"delta":{"reasoning_content":"hm"}}]})"
              "\n\nda");
  reader.take(R"(ta: {"choices":[{"delta":{"content":"yes"}}]})"
              "\n\n");
  reader.take(R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":)"
              R"({"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]})"
              "\n\n");
  reader.take(R"(data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,)"
              R"("prompt_tokens_details":{"cached_tokens":8}}})"
              "\n\ndata: [DONE]\n\n");
  EXPECT_EQ(reader.error(), "");
  const Answer answer = reader.finish();
  EXPECT_EQ(seen, "0hm|1yes|2calls look |2{}|");
  EXPECT_EQ(answer.content, "yes");
  EXPECT_EQ(answer.finish_reason, "tool_calls");
  EXPECT_EQ(answer.n_prompt, 9);
  EXPECT_EQ(answer.n_cached, 8);
  EXPECT_EQ(answer.n_generated, 4);
}

TEST(AnswerReader, SaysWhatWentWrong) {
  const std::function<void(const Piece&)> ignore = [](const Piece&) {};
  AnswerReader body(ignore);
  body.take(R"({"error":{"message":"no such model","code":null}})");
  EXPECT_EQ(body.error(), "no such model");
  AnswerReader event(ignore);
  event.take("data: {\"error\":{\"message\":\"too late\"}}\n\n");
  EXPECT_EQ(event.error(), "too late");
}

TEST(AnswerReader, CountsThatFitNoIntAreTheLargest) {
  const std::function<void(const Piece&)> ignore = [](const Piece&) {};
  AnswerReader reader(ignore);
  reader.take(R"(data: {"choices":[],"usage":{"prompt_tokens":4294967297,)"
              R"("completion_tokens":1e300,"prompt_tokens_details":{"cached_tokens":-5}}})"
              "\n\n");
  const Answer answer = reader.finish();
  EXPECT_EQ(answer.n_prompt, std::numeric_limits<int>::max());
  EXPECT_EQ(answer.n_generated, std::numeric_limits<int>::max());
  EXPECT_EQ(answer.n_cached, 0);
}

// The question is whether the environment's proxy is left out: only where no other machine is asked.
TEST(ChatClient, OnlyThisMachineIsLoopback) {
  for (const char* url :
       {"http://localhost/v1", "http://localhost:8080/v1", "http://LOCALHOST:8080/v1",
        "http://127.0.0.1:80/v1", "http://127.1.2.3/v1", "http://[::1]:8080/v1"}) {
    EXPECT_TRUE(is_loopback(url)) << url;
  }
  for (const char* url :
       {"http://localhost.example.com/v1", "http://localhost@example.com/v1",
        "http://127.0.0.1.example.com/v1", "http://[::1:2]/v1", "https://example.com/v1",
        "http://128.0.0.1/v1", "http://localhosts/v1", "no address"}) {
    EXPECT_FALSE(is_loopback(url)) << url;
  }
}

TEST(LineEditor, AHistoryIsTheOwnersAlone) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "chat_history";
  std::ofstream(path) << "_HiStOrY_V2_\nhello\n";
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  const LineEditor editor(path);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  std::filesystem::remove(path);
}

TEST(ChatClient, FindsKvUseOfItsModel) {
  const std::string metrics =
      "# HELP slipstream:kv_cache_bytes x\n"
      "slipstream:kv_cache_bytes{kv_scheme=\"f16\",model_name=\"other\"} 5\n"
      "slipstream:kv_cache_bytes{kv_scheme=\"turbo4\",model_name=\"needle\"} 1000\n";
  const ServerModel needle{.name = "needle", .is_ours = true, .n_context = 400};
  const auto use = find_kv_use(metrics, needle, 100);
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->scheme, "turbo4");
  EXPECT_EQ(use->all_bytes, 1000);
  EXPECT_EQ(use->used_bytes, 250);
  EXPECT_FALSE(find_kv_use(metrics, {.name = "needl", .is_ours = true, .n_context = 400}, 100));
  EXPECT_FALSE(find_kv_use(metrics, {.name = "needle"}, 100)) << "its context is not known";
  EXPECT_FALSE(find_kv_use(metrics, needle, 0)) << "an answer that was stopped";
  EXPECT_FALSE(find_kv_use("", needle, 100));
}

TEST(ChatClient, SpeedOfAnAnswerInOnePieceIsThatOfItsWholeTime) {
  Answer answer;
  answer.n_generated = 21;
  answer.first_token_s = 2;
  answer.seconds = 2.1;
  EXPECT_NEAR(*tokens_per_second(answer), 10, 1e-9);
  answer.first_token_s = 1;
  answer.seconds = 3;
  answer.is_streamed = true;
  EXPECT_NEAR(*tokens_per_second(answer), 10, 1e-9);
  EXPECT_FALSE(tokens_per_second({}).has_value());
}

}  // namespace
}  // namespace slipstream::chat
