#include "hub/http_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream::hub {
namespace {

using testing::HasSubstr;

const Subject kSubject{.repo_id = "a/b", .page = "https://hub/a/b", .has_token = false};

Verdict judge_status(long status, const std::string& error_code = "") {
  HttpAnswer answer;
  answer.status = status;
  answer.url = "https://cdn.example/x?signature=secret";
  answer.error_code = error_code;
  return judge(answer, kSubject);
}

std::optional<Error> check(long status, const std::string& content_range,
                           HttpRequest::Range asked = {.begin = 100, .end = 200}) {
  HttpAnswer answer;
  answer.status = status;
  answer.content_range = content_range;
  return check_range(answer, asked, 1000);
}

TEST(HttpVerdict, RefusalsSayWhatToDo) {
  EXPECT_FALSE(judge_status(206).error);
  const Verdict gated = judge_status(403, "GatedRepo");
  EXPECT_EQ(gated.error->code, Code::kPermission);
  EXPECT_THAT(gated.error->message, HasSubstr("accept its licence at https://hub/a/b"));
  EXPECT_THAT(gated.error->message, HasSubstr("HF_TOKEN"));
  EXPECT_FALSE(gated.is_worth_retrying);
  EXPECT_THAT(judge_status(401).error->message, HasSubstr("check the name"));
  EXPECT_EQ(judge_status(404).error->code, Code::kNotFound);
  EXPECT_FALSE(judge_status(416).is_worth_retrying);
}

TEST(HttpVerdict, BusyServersAreAskedAgainAfterTheTimeTheyName) {
  EXPECT_TRUE(judge_status(503).is_worth_retrying);
  HttpAnswer answer;
  answer.status = 429;
  answer.retry_after = std::chrono::seconds(7);
  EXPECT_EQ(judge(answer, kSubject).wait_min, std::chrono::seconds(7));
  answer.retry_after = std::chrono::seconds(3600);
  EXPECT_FALSE(judge(answer, kSubject).is_worth_retrying);
  EXPECT_THAT(judge(answer, kSubject).error->message, HasSubstr("3600 s"));
}

TEST(HttpVerdict, AddressesAreShownWithoutTheirSignature) {
  EXPECT_THAT(judge_status(500).error->message, testing::Not(HasSubstr("secret")));
  EXPECT_THAT(judge_status(500).error->message, HasSubstr("https://cdn.example is busy"));
}

TEST(HttpVerdict, OnlyTheBytesAskedForAreTaken) {
  EXPECT_FALSE(check(206, "bytes 100-199/1000"));
  EXPECT_FALSE(check(206, "bytes 100-150/1000"));  // fewer bytes are allowed
  for (const char* wrong :
       {"bytes 0-99/1000", "bytes 100-200/1000", "bytes 100-199/999", "bytes 100-99/1000",
        "bytes 100-199/*", "bytes */1000", "100-199/1000", "", "bytes 100-199/1000 "}) {
    EXPECT_TRUE(check(206, wrong)) << wrong;
  }
  EXPECT_TRUE(check(200, ""));
  EXPECT_FALSE(check(200, "", {.begin = 0, .end = 1000}));
}

TEST(HttpVerdict, WaitsDoubleUpToHalfAMinute) {
  using std::chrono::milliseconds;
  EXPECT_EQ(backoff(1), milliseconds(500));
  EXPECT_EQ(backoff(2), milliseconds(1000));
  EXPECT_EQ(backoff(5), milliseconds(8000));
  EXPECT_EQ(backoff(100), milliseconds(30'000));
}

TEST(HttpVerdict, PathsAreEscaped) {
  EXPECT_EQ(escape_path("a b/c#d?e%.gguf"), "a%20b/c%23d%3Fe%25.gguf");
  EXPECT_EQ(escape_path("/-._~//\xC3\xA9/"), "/-._~//%C3%A9/");
  EXPECT_EQ(escape_path(""), "");
  EXPECT_EQ(host_of("http://127.0.0.1:80/x"), "http://127.0.0.1:80");
}

TEST(HttpVerdict, ValuesOfAQueryAreEscapedWithTheirSlashes) {
  EXPECT_EQ(escape_query("org/a b&c=d+e"), "org%2Fa%20b%26c%3Dd%2Be");
  EXPECT_EQ(escape_query("Az09-._~"), "Az09-._~");
  EXPECT_EQ(escape_query(std::string_view("a\0b", 3)), "a%00b");
  EXPECT_EQ(escape_query(std::string_view("abc").substr(0, 0)), "");
}

}  // namespace
}  // namespace slipstream::hub
