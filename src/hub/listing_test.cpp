#include "hub/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace slipstream::hub {
namespace {

using testing::HasSubstr;

const std::string kCommit(40, 'c');
const std::string kSha256(64, 'a');

std::string listing_with(const std::string& siblings) {
  return format_text(R"({{"id": "a/b", "sha": "{}", "siblings": [{}]}})", kCommit, siblings);
}

TEST(Listing, HasCommitSizesAndHashes) {
  const Result<RepoListing> listing = parse_listing(listing_with(format_text(
      R"({{"rfilename": "q/M-Q8_0.gguf", "size": 123, "blobId": "{0}",
           "lfs": {{"sha256": "{1}", "size": 123, "pointerSize": 131}}}},
         {{"rfilename": "small.gguf", "size": 7, "blobId": "{0}"}},
         {{"rfilename": "README.md"}})",
      kCommit, kSha256)));
  ASSERT_TRUE(listing) << listing.error().message;
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 3U);
  EXPECT_EQ(listing->files[0].path, "q/M-Q8_0.gguf");
  EXPECT_EQ(listing->files[0].n_bytes, 123U);
  EXPECT_EQ(listing->files[0].hash,
            (ContentHash{.kind = ContentHash::Kind::kSha256, .hex = kSha256}));
  EXPECT_EQ(listing->files[1].hash,
            (ContentHash{.kind = ContentHash::Kind::kGitBlob, .hex = kCommit}));
  EXPECT_EQ(listing->files[2].hash.hex, "");
}

TEST(Listing, PathsThatLeaveTheFolderAreRefused) {
  for (const char* path : {"../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/.", "..", "",
                           "a\\\\b", "a\\u0000b", "a\\nb"}) {
    const Result<RepoListing> listing =
        parse_listing(listing_with(format_text(R"({{"rfilename": "{}"}})", path)));
    ASSERT_FALSE(listing) << path;
    EXPECT_EQ(listing.error().code, Code::kCorrupt);
    EXPECT_THAT(listing.error().message, HasSubstr("nothing is downloaded"));
  }
  EXPECT_FALSE(is_safe_path(std::string(256, 'x')));
  EXPECT_TRUE(is_safe_path("..a/b..gguf"));
}

TEST(Listing, WhatIsNoListingIsSaid) {
  EXPECT_THAT(parse_listing("<html>").error().message, HasSubstr("HF_ENDPOINT"));
  EXPECT_FALSE(parse_listing("[]"));
  EXPECT_FALSE(parse_listing(R"({"sha": "../../x", "siblings": []})"));
  EXPECT_FALSE(parse_listing(R"({"siblings": []})"));
  EXPECT_FALSE(parse_listing(listing_with("3")));
  // A hash is a file name too.
  EXPECT_FALSE(
      parse_listing(listing_with(R"({"rfilename": "a.gguf", "lfs": {"sha256": "../../../x"}})")));
  EXPECT_FALSE(parse_listing(listing_with(R"({"rfilename": "a", "size": 18446744073709551615})")));
}

}  // namespace
}  // namespace slipstream::hub
