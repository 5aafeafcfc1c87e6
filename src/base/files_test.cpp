// Tests of unique_fd.h and mapping.h on real files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/limits.h"
#include "base/mapping.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = testing::TempDir() + "slipstream-files-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& file_name, std::string_view text) {
    const std::string path = directory_ + "/" + file_name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string directory_;
};

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST_F(Files, DescriptorIsClosedOnceByItsLastOwner) {
  Result<UniqueFd> first = open_file(write("a", "x"), O_RDONLY);
  ASSERT_TRUE(first);
  const int raw = first->get();
  EXPECT_TRUE(::fcntl(raw, F_GETFD) & FD_CLOEXEC);
  {
    const UniqueFd second = std::move(*first);
    EXPECT_EQ(second.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST_F(Files, AMissingFileIsNamed) {
  const Result<UniqueFd> fd = open_file(directory_ + "/absent", O_RDONLY);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::kNotFound);
  EXPECT_NE(fd.error().message.find("/absent: No such file"), std::string::npos);
}

TEST_F(Files, ReadsExactlyOrSaysWhereTheFileEnds) {
  const Result<UniqueFd> fd = open_file(write("a", "0123456789"), O_RDONLY);
  ASSERT_TRUE(fd);
  std::vector<std::byte> four(4);
  ASSERT_TRUE(read_exactly(fd->get(), four, 3));
  EXPECT_EQ(four[0], std::byte{'3'});
  EXPECT_EQ(four[3], std::byte{'6'});
  const Result<void> beyond = read_exactly(fd->get(), four, 8);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kCorrupt);
  EXPECT_EQ(beyond.error().message, "the file ends at byte 10, 2 bytes too early");
}

TEST_F(Files, WritesExactlyOrSaysWhyNot) {
  const std::string path = write("a", "");
  const Result<UniqueFd> fd = open_file(path, O_WRONLY);
  ASSERT_TRUE(fd);
  const std::vector<std::byte> text(100'000, std::byte{'x'});
  ASSERT_TRUE(write_exactly(fd->get(), text));
  ASSERT_TRUE(write_exactly(fd->get(), std::span(text).first(1)));
  EXPECT_EQ(read_small_file(path), std::string(100'001, 'x'));
  const Result<UniqueFd> full = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(full);
  EXPECT_EQ(write_exactly(full->get(), text).error().message,
            "cannot write 100000 bytes: No space left on device");
}

TEST_F(Files, ReadsSmallFilesAndRefusesLargeOnes) {
  EXPECT_EQ(read_small_file(write("a", "hello\n")), "hello\n");
  EXPECT_TRUE(read_small_file("/proc/self/status").value().starts_with("Name:"));
  const std::string large(kLimits.small_file_bytes_max + 1, 'x');
  EXPECT_EQ(read_small_file(write("b", large)).error().code, Code::kInvalidArgument);
}

TEST_F(Files, MapsAFile) {
  const Result<Mapping> mapping = Mapping::of_file(write("a", "abc"));
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->bytes().size(), 3U);
  EXPECT_EQ(mapping->bytes()[2], std::byte{'c'});
  EXPECT_TRUE(Mapping::of_file(write("empty", ""))->bytes().empty());
  EXPECT_EQ(Mapping::of_file(directory_ + "/absent").error().code, Code::kNotFound);
}

TEST_F(Files, AnonymousMemoryIsZeroWritableAndMovable) {
  Result<Mapping> mapping = Mapping::anonymous(std::size_t{1} << 30);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->bytes().back(), std::byte{0});
  mapping->bytes()[12345] = std::byte{9};
  Mapping other = std::move(*mapping);
  EXPECT_EQ(other.bytes()[12345], std::byte{9});
  other.zero();
  EXPECT_EQ(other.bytes()[12345], std::byte{0});
  other = Mapping();
  EXPECT_TRUE(other.bytes().empty());
  EXPECT_EQ(Mapping::anonymous(~std::size_t{0} / 2).error().code, Code::kOutOfMemory);
}

}  // namespace
}  // namespace slipstream
