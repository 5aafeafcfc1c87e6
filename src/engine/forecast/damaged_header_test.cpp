// For any damage to a model's header, a forecast is an Error or a number, never a crash. The tests
// change bytes of the needle model's header and cut off the file. What libggml itself does with
// such a header is tested, too.
#include <fcntl.h>
#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <random>
#include <vector>

#include "base/unique_fd.h"
#include "engine/forecast/memory_forecast.h"
#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

// Metadata before the tokens, and the list of tensors: the bytes that matter most.
constexpr std::size_t kFirstBytes = 748;
constexpr std::size_t kTensorsBegin = 59700;
constexpr std::size_t kHeaderBytes = 62500;

void quiet(ggml_log_level /*level*/, const char* /*text*/, void* /*user_data*/) {}

class DamagedHeader : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
    ggml_log_set(quiet, nullptr);  // gguf would report the same errors thousands of times
  }
  static void TearDownTestSuite() { ggml_log_set(nullptr, nullptr); }

  // The header, followed by zeroes that take no disk space.
  DamagedHeader() : header_(kHeaderBytes), path_(folder_.path() / "m.gguf") {
    std::ifstream(NEEDLE_MODEL, std::ios::binary).read(header_.data(), kHeaderBytes);
    std::ofstream(path_, std::ios::binary).write(header_.data(), kHeaderBytes);
    file_bytes_ = std::filesystem::file_size(NEEDLE_MODEL);
    std::filesystem::resize_file(path_, file_bytes_);
    fd_ = open_file(path_.string(), O_WRONLY).value_or(UniqueFd());
  }

  // In place: rewriting the file would go to the disk each time.
  void put(std::size_t at, char byte) {
    ASSERT_EQ(::pwrite(fd_.get(), &byte, 1, static_cast<off_t>(at)), 1);
  }

  void forecast_with(std::size_t at, char byte) {
    put(at, byte);
    const Result<MemoryForecast> forecasted = forecast(path_, KvScheme{}, {.n_ctx = 4096});
    put(at, header_[at]);
    if (!forecasted) {
      EXPECT_FALSE(forecasted.error().message.empty());
      ++n_errors_;
      return;
    }
    // Any forecast is within bounds: nothing has overflowed.
    EXPECT_LT(forecasted->resident(), std::uint64_t{1} << 62) << "byte " << at;
    ++n_forecasts_;
  }

  TestFolder folder_;
  std::vector<char> header_;
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uintmax_t file_bytes_;
  int n_errors_ = 0;
  int n_forecasts_ = 0;
};

TEST_F(DamagedHeader, IntactItIsForecast) {
  ASSERT_TRUE(forecast(path_, KvScheme{}, {.n_ctx = 4096}));
}

TEST_F(DamagedHeader, OneByteChangedInTheMetadata) {
  for (std::size_t at = 0; at < kFirstBytes; ++at) {
    forecast_with(at, static_cast<char>(header_[at] ^ 0x01));
    forecast_with(at, static_cast<char>(header_[at] ^ 0x80));
    forecast_with(at, static_cast<char>(0xff));
  }
  EXPECT_GT(n_errors_, 100);
  EXPECT_GT(n_forecasts_, 100);
}

TEST_F(DamagedHeader, OneByteChangedInTheListOfTensors) {
  for (std::size_t at = kTensorsBegin; at < kHeaderBytes; ++at) {
    forecast_with(at, static_cast<char>(header_[at] ^ (at % 2 == 0 ? 0x80 : 0x01)));
  }
  EXPECT_GT(n_errors_, 100);
}

TEST_F(DamagedHeader, ManyBytesChanged) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    std::array<std::size_t, 8> places{};
    for (std::size_t& at : places) put(at = random() % kHeaderBytes, static_cast<char>(random()));
    (void)forecast(path_, KvScheme{}, {.n_ctx = 4096});
    for (const std::size_t at : places) put(at, header_[at]);
  }
}

TEST_F(DamagedHeader, CutOffAnywhere) {
  for (std::uintmax_t size = file_bytes_ - 1; size > 0;
       size -= size > 100'000 ? 50'000 : std::min<std::uintmax_t>(size, size > 1024 ? 97 : 1)) {
    ASSERT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(size)), 0);
    const Result<MemoryForecast> forecasted = forecast(path_, KvScheme{}, {.n_ctx = 4096});
    ASSERT_FALSE(forecasted) << size;
    EXPECT_EQ(forecasted.error().code, size < 4 ? Code::kInvalidArgument : Code::kCorrupt) << size;
  }
}

}  // namespace
}  // namespace slipstream
