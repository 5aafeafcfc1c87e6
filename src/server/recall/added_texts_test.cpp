#include "server/recall/added_texts.h"

#include <gtest/gtest.h>

#include <string>

#include "server/recall/message_text.h"

namespace slipstream {
namespace {

AddedPlaces text_of(std::string text) {
  return {{.source = {.path = "a"}, .text = std::move(text)}};
}

MessageKey key_of(Salt salt, std::string_view purpose, std::string_view text) {
  return MessageKeys(salt, purpose).next(text);
}

TEST(AddedTexts, AreFoundByWhatUsersSaidBefore) {
  AddedTexts added(10'000);
  MessageKeys keys(1, "linux");
  const MessageKey first = keys.next("Hello");
  const MessageKey second = keys.next("And then?");
  added.put(first, text_of("one"));
  added.put(second, text_of("two"));
  EXPECT_EQ(added.find(first)->front().text, "one");
  EXPECT_EQ(added.find(second)->front().text, "two");
  EXPECT_EQ(added.find(key_of(1, "linux", "And then?")), nullptr);
}

TEST(AddedTexts, AreOfOneClientAndOnePurpose) {
  AddedTexts added(10'000);
  added.put(key_of(1, "linux", "Hello"), text_of("secret"));
  EXPECT_NE(added.find(key_of(1, "linux", "Hello")), nullptr);
  EXPECT_EQ(added.find(key_of(2, "linux", "Hello")), nullptr);
  EXPECT_EQ(added.find(key_of(1, "rust", "Hello")), nullptr);
}

TEST(AddedTexts, ForgetWhatWasNotUsedForLongest) {
  AddedTexts added(5'000);
  const std::string text(1'000, 'x');  // three fit
  for (const std::string_view name : {"a", "b", "c"}) added.put(key_of(1, "", name), text_of(text));
  EXPECT_NE(added.find(key_of(1, "", "a")), nullptr);
  added.put(key_of(1, "", "d"), text_of(text));
  EXPECT_EQ(added.find(key_of(1, "", "b")), nullptr);
  EXPECT_NE(added.find(key_of(1, "", "a")), nullptr);
  EXPECT_NE(added.find(key_of(1, "", "d")), nullptr);
}

TEST(AddedTexts, ReplaceAndRefuseWhatIsTooLong) {
  AddedTexts added(1'000);
  const MessageKey key = key_of(1, "", "a");
  added.put(key, text_of("old"));
  added.put(key, text_of("new"));
  EXPECT_EQ(added.find(key)->front().text, "new");
  added.put(key, text_of(std::string(2'000, 'x')));
  EXPECT_EQ(added.find(key), nullptr);
}

TEST(AddedTexts, ShowTheirPlacesUnderNumbers) {
  EXPECT_EQ(
      numbered(3,
               {.source = {.project = "/home/ann", .path = "a.c", .first_line = 2, .last_line = 4},
                .text = "one\ntwo"}),
      "\n[3] /home/ann/a.c:2-4\none\ntwo\n");
  EXPECT_EQ(numbered(1, {.source = {.chat = "c", .path = "a.txt", .first_line = 1, .last_line = 1},
                         .text = "one\n"}),
            "\n[1] a.txt:1-1\none\n");
}

TEST(RecallSource, CoversItsOwnLines) {
  const RecallSource all{.chat = "c", .path = "a", .version = 1, .first_line = 1, .last_line = 9};
  RecallSource part = all;
  part.first_line = 3;
  EXPECT_TRUE(all.covers(part));
  EXPECT_FALSE(part.covers(all));
  part.version = 2;
  EXPECT_FALSE(all.covers(part));
}

TEST(MessageText, IsReadAndPutBeforeStringsAndParts) {
  Json plain = {{"role", "user"}, {"content", "Why?"}};
  put_before_content(plain, "Found.");
  EXPECT_EQ(text_of_message(plain), "Found.\nWhy?");
  Json parts = {{"role", "user"},
                {"content", Json::array({{{"type", "text"}, {"text", "Why"}},
                                         {{"type", "image_url"}},
                                         {{"type", "text"}, {"text", "not?"}}})}};
  EXPECT_EQ(text_of_message(parts), "Why\nnot?");
  put_before_content(parts, "Found.");
  EXPECT_EQ(text_of_message(parts), "Found.\nWhy\nnot?");
  EXPECT_TRUE(is_said_by(parts, "user"));
  EXPECT_FALSE(is_said_by(parts, "system"));
}

TEST(MessageText, LeavesAloneWhatIsNoMessage) {
  for (Json strange : {Json(7), Json("x"), Json::object(), Json{{"role", 7}, {"content", 7}}}) {
    EXPECT_EQ(text_of_message(strange), "");
    EXPECT_FALSE(is_said_by(strange, "user"));
    if (strange.is_object()) put_before_content(strange, "Found.");
  }
}

}  // namespace
}  // namespace slipstream
