#include "server/recall/added_texts.h"

#include <gtest/gtest.h>

#include <string>

#include "server/recall/message_text.h"

namespace slipstream {
namespace {

MessageKey key_of(Salt salt, std::string_view purpose, std::string_view text) {
  return MessageKeys(salt, purpose).next(text);
}

TEST(AddedTexts, AreFoundByWhatUsersSaidBefore) {
  AddedTexts added(10'000);
  MessageKeys keys(1, "linux");
  const MessageKey first = keys.next("Hello");
  const MessageKey second = keys.next("And then?");
  added.put(first, {.text = "one"});
  added.put(second, {.text = "two"});
  EXPECT_EQ(added.find(first)->text, "one");
  EXPECT_EQ(added.find(second)->text, "two");
  EXPECT_EQ(added.find(key_of(1, "linux", "And then?")), nullptr);
}

TEST(AddedTexts, AreOfOneClientAndOnePurpose) {
  AddedTexts added(10'000);
  added.put(key_of(1, "linux", "Hello"), {.text = "secret"});
  EXPECT_NE(added.find(key_of(1, "linux", "Hello")), nullptr);
  EXPECT_EQ(added.find(key_of(2, "linux", "Hello")), nullptr);
  EXPECT_EQ(added.find(key_of(1, "rust", "Hello")), nullptr);
}

TEST(AddedTexts, ForgetWhatWasNotUsedForLongest) {
  AddedTexts added(4'000);
  const std::string text(1'000, 'x');  // three fit
  for (const std::string_view name : {"a", "b", "c"})
    added.put(key_of(1, "", name), {.text = text});
  EXPECT_NE(added.find(key_of(1, "", "a")), nullptr);
  added.put(key_of(1, "", "d"), {.text = text});
  EXPECT_EQ(added.find(key_of(1, "", "b")), nullptr);
  EXPECT_NE(added.find(key_of(1, "", "a")), nullptr);
  EXPECT_NE(added.find(key_of(1, "", "d")), nullptr);
}

TEST(AddedTexts, ReplaceAndRefuseWhatIsTooLong) {
  AddedTexts added(1'000);
  const MessageKey key = key_of(1, "", "a");
  added.put(key, {.text = "old"});
  added.put(key, {.text = "new"});
  EXPECT_EQ(added.find(key)->text, "new");
  added.put(key, {.text = std::string(2'000, 'x')});
  EXPECT_EQ(added.find(key), nullptr);
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
