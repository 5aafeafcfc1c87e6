#include "server/api/image_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/base64.h"

namespace slipstream {
namespace {

std::string bytes_in(std::string_view url) {
  const ApiResult<std::vector<std::byte>> bytes = read_image_url(url, "here");
  if (!bytes) return bytes.error().param + ": " + bytes.error().message;
  std::string text;
  for (const std::byte byte : *bytes) text += static_cast<char>(byte);
  return text;
}

TEST(ImageParts, ADataUriHasTheFile) {
  EXPECT_EQ(bytes_in("data:image/png;base64,aGVsbG8="), "hello");
  EXPECT_EQ(bytes_in("data:image/jpeg;base64,aGVsbG8"), "hello");
}

TEST(ImageParts, NothingIsFetched) {
  for (const std::string_view url : {"http://127.0.0.1/a.png", "https://example.org/a.png"}) {
    EXPECT_TRUE(bytes_in(url).contains("here: 'here' is an address: this server fetches nothing"));
  }
  for (const std::string_view url :
       {"file:///etc/passwd", "", "aGVsbG8=", "data:text/plain;base64,aGVsbG8=", "data:image/png,x",
        "data:image/png;base64,", "data:image/png;base64,a", "data:image/png;base64,aG=VsbG8=",
        "data:image/png;base64,aGVs bG8=", "data:image/png;base64,===="}) {
    EXPECT_TRUE(bytes_in(url).starts_with("here: 'here' must be an image as data:")) << url;
  }
}

TEST(ImageParts, Base64IsReadAsItWasWritten) {
  for (std::size_t n = 0; n < 300; ++n) {
    std::vector<std::byte> bytes(n);
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 37 + n);
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(ImageParts, PartsOfOtherApisBecomeOpenAis) {
  Json block = Json::parse(
      R"({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}})");
  const std::string expected =
      R"({"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="},"path":"p"})";
  EXPECT_EQ(dump(image_part_of_block(block, "p").value()), expected);
  Json input = Json::parse(R"({"type": "input_image", "image_url": "data:image/png;base64,aGk="})");
  EXPECT_EQ(dump(image_part_of_input(input, "p").value()), expected);
  Json by_url = Json::parse(R"({"type": "image", "source": {"type": "url", "url": "http://x/"}})");
  EXPECT_EQ(image_part_of_block(by_url, "p").value()["image_url"]["url"], "http://x/");
  for (const char* wrong : {R"({"type": "image"})", R"({"type": "image", "source": {}})",
                            R"({"type": "image", "source": {"type": "file", "file_id": "f"}})",
                            R"({"type": "image", "source": {"type": "base64", "data": 7}})"}) {
    Json part = Json::parse(wrong);
    EXPECT_EQ(image_part_of_block(part, "p").error().param, "p") << wrong;
  }
  Json by_id = Json::parse(R"({"type": "input_image", "file_id": "f"})");
  EXPECT_TRUE(image_part_of_input(by_id, "p").error().message.contains("data URI"));
}

}  // namespace
}  // namespace slipstream
