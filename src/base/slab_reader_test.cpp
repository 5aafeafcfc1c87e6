#include "base/slab_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <random>

#include "base/mapping.h"

namespace slipstream {
namespace {

constexpr std::size_t kFileBytes = (std::size_t{3} << 20) + 1234;  // ends within a block

class SlabReaderTest : public testing::TestWithParam<ReadMethod> {
 protected:
  void SetUp() override {
    std::mt19937 random(3);
    content_.resize(kFileBytes);
    for (std::byte& byte : content_) byte = static_cast<std::byte>(random());
    Result<UniqueFd> out = open_file(path_, O_CREAT | O_TRUNC | O_WRONLY);
    ASSERT_TRUE(out);
    ASSERT_TRUE(write_exactly(out->get(), content_));
    Result<DataFile> file = open_data_file(path_, GetParam());
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::make_unique<DataFile>(std::move(*file));
    memory_ = *Mapping::anonymous(std::size_t{64} << 20);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Pieces at random places, each with memory of its own.
  std::vector<FilePiece> random_pieces(int n, std::size_t n_bytes_max) {
    std::mt19937 random(11);
    std::vector<FilePiece> pieces;
    std::byte* into = memory_.bytes().data();
    for (int i = 0; i < n; ++i) {
      const std::size_t n_bytes = 1 + random() % n_bytes_max;
      pieces.push_back({.file = file_.get(),
                        .offset = random() % (kFileBytes - n_bytes + 1),
                        .n_bytes = n_bytes,
                        .into = into});
      into += pieces.back().n_block_bytes();
    }
    return pieces;
  }

  void expect_read(std::span<const FilePiece> pieces) const {
    for (const FilePiece& piece : pieces) {
      const std::span got(piece.into + piece.offset % kBlockBytes, piece.n_bytes);
      ASSERT_TRUE(std::ranges::equal(got, std::span(content_).subspan(piece.offset, piece.n_bytes)))
          << piece.offset << " + " << piece.n_bytes;
    }
  }

  // Under /var/tmp rather than /tmp, which may be memory that refuses O_DIRECT.
  const std::string path_ = "/var/tmp/slab_reader_test." + std::to_string(::getpid());
  std::vector<std::byte> content_;
  std::unique_ptr<DataFile> file_;
  Mapping memory_;
};

TEST_P(SlabReaderTest, ReadsWhatIsThere) {
  SlabReader reader(GetParam());
  const std::vector<FilePiece> pieces = random_pieces(300, 100'000);
  const Result<void> read = reader.wait(reader.start(pieces));
  ASSERT_TRUE(read) << read.error().message;
  expect_read(pieces);
}

TEST_P(SlabReaderTest, ReadsIntoRegisteredMemory) {
  SlabReader reader(GetParam());
  const std::array areas = {memory_.bytes().subspan(std::size_t{32} << 20),
                            memory_.bytes().first(std::size_t{16} << 20)};
  reader.register_memory(areas);
  const std::vector<FilePiece> pieces = random_pieces(40, std::size_t{1} << 20);
  ASSERT_TRUE(reader.wait(reader.start(pieces)));
  expect_read(pieces);
}

TEST_P(SlabReaderTest, SeveralBatchesMayBeUnderWayAndBeAwaitedInAnyOrder) {
  SlabReader reader(GetParam());
  const std::vector<FilePiece> pieces = random_pieces(200, 200'000);
  std::vector<SlabReader::Ticket> tickets;
  for (std::size_t i = 0; i < pieces.size(); i += 10) {
    tickets.push_back(reader.start(std::span(pieces).subspan(i, 10)));
  }
  std::ranges::reverse(tickets);
  for (const SlabReader::Ticket ticket : tickets) ASSERT_TRUE(reader.wait(ticket));
  expect_read(pieces);
}

TEST_P(SlabReaderTest, ReadsTheLastBytesOfTheFile) {
  SlabReader reader(GetParam());
  const std::array pieces = {FilePiece{.file = file_.get(),
                                       .offset = kFileBytes - 700,
                                       .n_bytes = 700,
                                       .into = memory_.bytes().data()}};
  ASSERT_TRUE(reader.wait(reader.start(pieces)));
  expect_read(pieces);
}

TEST_P(SlabReaderTest, AFileCutShortIsAnErrorAndOthersAreUnharmed) {
  SlabReader reader(GetParam());
  ASSERT_EQ(::truncate(path_.c_str(), kFileBytes / 2), 0);
  const std::array gone = {FilePiece{.file = file_.get(),
                                     .offset = kFileBytes - 100'000,
                                     .n_bytes = 50'000,
                                     .into = memory_.bytes().data()}};
  const std::array there = {FilePiece{.file = file_.get(),
                                      .offset = 1000,
                                      .n_bytes = 50'000,
                                      .into = memory_.bytes().data() + (std::size_t{1} << 20)}};
  const SlabReader::Ticket bad = reader.start(gone);
  const SlabReader::Ticket good = reader.start(there);
  const Result<void> read = reader.wait(bad);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kIo);
  EXPECT_NE(read.error().message.find(path_), std::string::npos) << read.error().message;
  EXPECT_TRUE(reader.wait(good));
  expect_read(there);
}

TEST_P(SlabReaderTest, AnErrorOfTheDiskIsTheErrorOfItsBatchAlone) {
  SlabReader reader(GetParam());
  const std::vector<FilePiece> pieces = random_pieces(20, 2'000'000);
  reader.set_fault([&](const FilePiece& piece) { return piece.into == pieces[3].into ? EIO : 0; });
  const SlabReader::Ticket bad = reader.start(std::span(pieces).first(10));
  const SlabReader::Ticket good = reader.start(std::span(pieces).subspan(10));
  const Result<void> read = reader.wait(bad);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("Input/output error"), std::string::npos);
  EXPECT_TRUE(reader.wait(good));
  reader.set_fault(nullptr);
  ASSERT_TRUE(reader.wait(reader.start(pieces)));
  expect_read(pieces);
}

TEST_P(SlabReaderTest, AnInterruptedReadIsTriedAgain) {
  SlabReader reader(GetParam());
  const std::vector<FilePiece> pieces = random_pieces(20, 50'000);
  int n_interrupted = 0;
  reader.set_fault([&](const FilePiece&) { return n_interrupted++ < 5 ? EINTR : 0; });
  ASSERT_TRUE(reader.wait(reader.start(pieces)));
  expect_read(pieces);
}

// The descriptor of the ring, whatever its number, leads elsewhere: no call on it succeeds any
// more.
void break_rings() {
  const Result<UniqueFd> other = open_file("/proc/self/stat", O_RDONLY);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:[io_uring]") {
      ASSERT_GE(::dup2(other->get(), std::stoi(entry.path().filename().string())), 0);
    }
  }
}

TEST_P(SlabReaderTest, ADeadRingIsAnErrorAndNotAWaitForEver) {
  SlabReader reader(GetParam());
  const bool has_ring = reader.way() != ReadMethod::kPread;
  const std::vector<FilePiece> pieces = random_pieces(20, 50'000);
  break_rings();
  for (int i = 0; i < 2; ++i) {  // and from then on
    const Result<void> read = reader.wait(reader.start(pieces));
    ASSERT_EQ(read.has_value(), !has_ring);
    if (has_ring) {
      EXPECT_EQ(read.error().code, Code::kIo);
      EXPECT_NE(read.error().message.find("io=pread"), std::string::npos) << read.error().message;
    }
  }
}

TEST_P(SlabReaderTest, MayBeDestroyedWhileReadsAreUnderWay) {
  const std::vector<FilePiece> pieces = random_pieces(100, 300'000);
  {
    SlabReader reader(GetParam());
    (void)reader.start(pieces);
  }
  memory_.reset();
}

std::string way_name(const testing::TestParamInfo<ReadMethod>& way) {
  switch (way.param) {
    case ReadMethod::kUringDirect: return "direct";
    case ReadMethod::kUringBuffered: return "buffered";
    case ReadMethod::kPread: return "pread";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Ways, SlabReaderTest,
                         testing::Values(ReadMethod::kUringDirect, ReadMethod::kUringBuffered,
                                         ReadMethod::kPread),
                         way_name);

}  // namespace
}  // namespace slipstream
