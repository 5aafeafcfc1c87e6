#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/limits.h"

namespace slipstream::log {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

std::string line(Fields fields, std::string_view request_id = "-") {
  return format_line("a.b", fields, request_id);
}

TEST(Log, WritesKeyValuePairsInOrder) {
  EXPECT_EQ(line({{"n", 3}, {"rate", 2.5}, {"ok", true}, {"name", "x"}}, "r-7"),
            "event=a.b request=r-7 n=3 rate=2.5 ok=true name=x");
}

TEST(Log, QuotesWhatWouldBreakALineApart) {
  EXPECT_EQ(line({{"v", "two words"}}), R"(event=a.b request=- v="two words")");
  EXPECT_EQ(line({{"v", "a=\"b\"\\\n\t\x7f"}}), R"(event=a.b request=- v="a=\"b\"\\\x0a\x09\x7f")");
  EXPECT_EQ(line({{"v", "a=b"}}), R"(event=a.b request=- v="a=b")");
  EXPECT_EQ(line({{"v", ""}}), R"(event=a.b request=- v="")");
  EXPECT_EQ(line({{"v", "größe"}}), "event=a.b request=- v=größe");
}

TEST(Log, DropsWholeFieldsThatDoNotFitAndCountsThem) {
  const std::string huge(kLimits.log_line_bytes_max, 'x');
  const std::string text = line({{"a", 1}, {"huge", huge}, {"b", 2}});
  EXPECT_EQ(text, "event=a.b request=- a=1 b=2 n_fields_dropped=1");
}

TEST(Log, WritesOneLineWithTimeAndLevelToStandardError) {
  CaptureStderr();
  info("engine.step", {{"text", "{} {0}\nnext"}});
  debug("engine.token");
  EXPECT_THAT(GetCapturedStderr(),
              testing::MatchesRegex("ts=[-0-9T:.]+Z level=info event=engine.step request=- "
                                    "text=\"\\{\\} \\{0\\}\\\\x0anext\"\n"));
}

TEST(Log, LevelDecidesWhatIsWritten) {
  set_level(Level::kDebug);
  CaptureStderr();
  debug("engine.token");
  EXPECT_THAT(GetCapturedStderr(), testing::HasSubstr("level=debug event=engine.token"));
  set_level(Level::kError);
  CaptureStderr();
  warn("engine.slow");
  EXPECT_EQ(GetCapturedStderr(), "");
  set_level(Level::kInfo);
}

}  // namespace
}  // namespace slipstream::log
