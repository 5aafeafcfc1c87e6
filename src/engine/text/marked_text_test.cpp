#include "engine/text/marked_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace slipstream {
namespace {

// The marks as one flag per byte.
std::vector<bool> flags(const MarkedText& text) {
  std::vector<bool> all(text.size(), false);
  for (const auto& [begin, end] : text.client_ranges()) {
    for (std::size_t i = begin; i < end; ++i) all[i] = true;
  }
  return all;
}

TEST(MarkedText, JoinsMarksThatTouch) {
  MarkedText text("ab", Origin::kClient);
  text.append("", Origin::kTemplate);
  text.append("c", Origin::kClient);
  text.append("d", Origin::kTemplate);
  text.append("", Origin::kClient);
  ASSERT_EQ(text.client_ranges().size(), 1U);
  EXPECT_EQ(text.client_ranges()[0], (MarkedText::Range{0, 3}));
  EXPECT_EQ(text.text(), "abcd");
  EXPECT_EQ(MarkedText("x", Origin::kTemplate).origin(), Origin::kTemplate);
  EXPECT_EQ(text.origin(), Origin::kClient);
}

RC_GTEST_PROP(MarkedText, MarksFollowTheirBytes,
              (const std::vector<std::pair<std::string, bool>>& parts)) {
  MarkedText text;
  std::string bytes;
  std::vector<bool> expected;
  for (const auto& [part, is_client] : parts) {
    text.append(part, is_client ? Origin::kClient : Origin::kTemplate);
    bytes += part;
    expected.insert(expected.end(), part.size(), is_client);
  }
  RC_ASSERT(text.text() == bytes);
  RC_ASSERT(flags(text) == expected);

  const auto begin = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  const auto end = *rc::gen::inRange<std::size_t>(begin, bytes.size() + 1);
  MarkedText twice = text.slice(begin, end);
  twice.append(text, begin, end);
  std::vector<bool> part(expected.begin() + static_cast<std::ptrdiff_t>(begin),
                         expected.begin() + static_cast<std::ptrdiff_t>(end));
  part.insert(part.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin),
              expected.begin() + static_cast<std::ptrdiff_t>(end));
  RC_ASSERT(twice.text() == bytes.substr(begin, end - begin) + bytes.substr(begin, end - begin));
  RC_ASSERT(flags(twice) == part);

  MarkedText again;
  text.for_each_run([&](std::string_view run, Origin origin) { again.append(run, origin); });
  RC_ASSERT(again.text() == bytes);
  RC_ASSERT(flags(again) == expected);
}

}  // namespace
}  // namespace slipstream
