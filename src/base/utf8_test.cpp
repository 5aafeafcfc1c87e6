#include "base/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace slipstream {
namespace {

std::string repaired(std::string_view bytes) {
  std::string text;
  append_repaired_utf8(text, bytes);
  return text;
}

TEST(Utf8, EveryScalarValueSurvives) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code_point);
    const Utf8Char character = decode_utf8(text);
    ASSERT_EQ(character.kind, Utf8Char::Kind::kValid) << std::hex << std::uint32_t{code_point};
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.n_bytes, text.size());
    for (std::size_t n_bytes = 1; n_bytes < text.size(); ++n_bytes) {
      ASSERT_EQ(decode_utf8(text.substr(0, n_bytes)).kind, Utf8Char::Kind::kIncomplete);
    }
  }
}

// The example of section 3.9 of the Unicode standard ("U+FFFD substitution of maximal subparts").
TEST(Utf8, ReplacesEachMaximalSubpartOnce) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(repaired("a\xF1\x80\x80\xE1\x80\xC2"
                     "b\x80"
                     "c\x80\xBF"
                     "d"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(repaired("\xC0\xAF"), r + r) << "an overlong form starts no character";
  EXPECT_EQ(repaired("\xE0\x80\xAF"), r + r + r);
  EXPECT_EQ(repaired("\xED\xA0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), r + r + r + r) << "past U+10FFFF";
}

TEST(Utf8, LeavesAnIncompleteEndAlone) {
  std::string text;
  EXPECT_EQ(append_repaired_utf8(text, "ok\xF0\x9F\x98"), 2U);
  EXPECT_EQ(text, "ok");
}

RC_GTEST_PROP(Utf8, RepairedTextIsNotRepairedAgain, (const std::string& bytes)) {
  const std::string once = repaired(bytes);
  RC_ASSERT(repaired(once) == once);
}

}  // namespace
}  // namespace slipstream
