#include "engine/text/text_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "engine/text/text_limits.h"

namespace slipstream {
namespace {

TextStream with_stops(std::vector<std::string> stops) {
  Result<TextStream> stream = TextStream::create(std::move(stops));
  EXPECT_TRUE(stream.has_value());
  return std::move(*stream);
}

TEST(TextStream, EmitsTextAsItComes) {
  TextStream stream = with_stops({});
  EXPECT_EQ(stream.push("Hello").text, "Hello");
  EXPECT_EQ(stream.push("").text, "");
  EXPECT_EQ(stream.push(", world").text, ", world");
  EXPECT_EQ(stream.finish().text, "");
}

TEST(TextStream, HoldsBackAnIncompleteCharacter) {
  TextStream stream = with_stops({});
  EXPECT_EQ(stream.push("a\xF0\x9F").text, "a");
  EXPECT_EQ(stream.push("\x98").text, "");
  EXPECT_EQ(stream.push("\x80!").text, "\xF0\x9F\x98\x80!");
  EXPECT_EQ(stream.push("\xE2\x82").text, "");
  EXPECT_EQ(stream.finish().text, "\xEF\xBF\xBD") << "once for the whole start of a character";
}

TEST(TextStream, FindsAStopAcrossTokens) {
  TextStream stream = with_stops({"\n\nUser:"});
  EXPECT_EQ(stream.push("Yes.\n").text, "Yes.");
  EXPECT_EQ(stream.push("\nUs").text, "");
  const TextStream::Delta delta = stream.push("er: more");
  EXPECT_EQ(delta.text, "");
  EXPECT_TRUE(delta.stopped);
  EXPECT_EQ(delta.matched_stop, "\n\nUser:");
  EXPECT_EQ(stream.push("still more").text, "");
  EXPECT_TRUE(stream.finish().stopped);
  EXPECT_EQ(stream.finish().text, "");
}

TEST(TextStream, EmitsWhatTurnsOutToBeNoStop) {
  TextStream stream = with_stops({"END"});
  EXPECT_EQ(stream.push("xE").text, "x");
  EXPECT_EQ(stream.push("N").text, "");
  EXPECT_EQ(stream.push("EN").text, "EN") << "a new one may start here";
  EXPECT_EQ(stream.finish().text, "EN");
}

TEST(TextStream, TheStopThatIsCompleteFirstWins) {
  TextStream nested = with_stops({"abcd", "bc"});
  const TextStream::Delta delta = nested.push("xabcd");
  EXPECT_EQ(delta.text, "xa");
  EXPECT_EQ(delta.matched_stop, "bc");
  TextStream together = with_stops({"c", "abc"});
  EXPECT_EQ(together.push("xabc").matched_stop, "abc");
}

TEST(TextStream, AStopThatEndsTooEarlyIsText) {
  TextStream stream = with_stops({"abab"});
  EXPECT_EQ(stream.push("xabab", false).text, "xab") << "the next may have begun";
  EXPECT_EQ(stream.push("c", false).text, "abc");
  EXPECT_EQ(stream.push("ab", false).text, "");
  const TextStream::Delta delta = stream.push("ab");
  EXPECT_EQ(delta.text, "");
  EXPECT_EQ(delta.matched_stop, "abab") << "one that only begins early counts";
}

TEST(TextStream, RefusesEmptyManyAndLongStops) {
  EXPECT_EQ(TextStream::create({"a", ""}).error().message, "a stop string is empty");
  EXPECT_EQ(TextStream::create(std::vector<std::string>(17, "a")).error().message,
            "17 stop strings are more than the 16 allowed");
  EXPECT_EQ(TextStream::create({std::string(1025, 'a')}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(TextStream::create({std::string(1024, 'a')}).has_value());
}

// A stop string with repetitions, in a text that almost matches: the worst case of a naive search.
TEST(TextStream, LongTextsTakeLinearTime) {
  const std::string stop = std::string(kTextLimits.stop_bytes_max - 1, 'a') + "b";
  TextStream stream = with_stops(std::vector<std::string>(kTextLimits.stops_max, stop));
  std::size_t n_bytes = 0;
  for (int i = 0; i < 50'000; ++i) n_bytes += stream.push("aaaa").text.size();
  n_bytes += stream.finish().text.size();
  EXPECT_EQ(n_bytes, 200'000U);
}

// WHATWG's UTF-8 decoder, word for word: https://encoding.spec.whatwg.org/#utf-8-decoder
std::string whatwg_decode(std::string_view bytes) {
  std::string text;
  std::string character;
  unsigned n_needed = 0;
  unsigned lower = 0x80;
  unsigned upper = 0xBF;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (n_needed == 0) {
      character = bytes[i];
      ++i;
      if (byte <= 0x7F) {
        text += character;
      } else if (byte >= 0xC2 && byte <= 0xDF) {
        n_needed = 1;
      } else if (byte >= 0xE0 && byte <= 0xEF) {
        if (byte == 0xE0) lower = 0xA0;
        if (byte == 0xED) upper = 0x9F;
        n_needed = 2;
      } else if (byte >= 0xF0 && byte <= 0xF4) {
        if (byte == 0xF0) lower = 0x90;
        if (byte == 0xF4) upper = 0x8F;
        n_needed = 3;
      } else {
        text += "\xEF\xBF\xBD";
      }
      continue;
    }
    const bool fits = byte >= lower && byte <= upper;
    lower = 0x80;
    upper = 0xBF;
    if (!fits) {
      n_needed = 0;
      text += "\xEF\xBF\xBD";
      continue;  // the byte is read again
    }
    character += bytes[i];
    ++i;
    if (--n_needed == 0) text += character;
  }
  if (n_needed > 0) text += "\xEF\xBF\xBD";
  return text;
}

struct Answer {
  std::string text;
  std::optional<std::string> stop;
  bool operator==(const Answer&) const = default;
};

Answer naive(const std::string& bytes, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= bytes.size(); ++end) {
    std::string longest;
    for (const std::string& stop : stops) {
      const bool ends_here = std::string_view(bytes).substr(0, end).ends_with(stop);
      if (ends_here && stop.size() > longest.size()) longest = stop;
    }
    if (!longest.empty()) return {whatwg_decode(bytes.substr(0, end - longest.size())), longest};
  }
  return {whatwg_decode(bytes), std::nullopt};
}

// Few different bytes, so that stop strings match and characters complete, overlap and break.
rc::Gen<std::string> some_bytes(int n_bytes_min) {
  const auto byte = rc::gen::element('a', 'b', '\xC3', '\xA9', '\xE2', '\x82', '\xF0', '\x9F');
  return rc::gen::suchThat(rc::gen::container<std::string>(byte), [n_bytes_min](const auto& text) {
    return static_cast<int>(text.size()) >= n_bytes_min;
  });
}

RC_GTEST_PROP(TextStream, EqualsTheNaiveAnswerForAnyCutting, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(some_bytes(0));
  auto stops = *rc::gen::container<std::vector<std::string>>(some_bytes(1));
  if (stops.size() > kTextLimits.stops_max) stops.resize(kTextLimits.stops_max);
  TextStream stream = with_stops(stops);
  std::string bytes;
  Answer answer;
  const auto take = [&answer](const TextStream::Delta& delta) {
    RC_ASSERT(whatwg_decode(delta.text) == delta.text);  // valid on its own, never split
    RC_ASSERT(!answer.stop || delta.text.empty());
    answer.text += delta.text;
    if (delta.stopped) answer.stop = delta.matched_stop;
  };
  for (const std::string& piece : pieces) {
    bytes += piece;
    take(stream.push(piece));
  }
  take(stream.finish());
  RC_TAG(answer.stop ? "stopped" : "ran to its end");
  RC_ASSERT(answer == naive(bytes, stops));
}

}  // namespace
}  // namespace slipstream
