#include "device/experts/extent.h"

#include <fcntl.h>
#include <ggml-cpp.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <vector>

#include "base/mapping.h"
#include "base/unique_fd.h"

namespace slipstream::turbo {
namespace {

constexpr int kValues = 100'000;
constexpr const char* kName = "blk.0.ffn_up_exps.weight";

class ExtentTest : public testing::Test {
 protected:
  void SetUp() override {
    const ggml_context_ptr context(
        ggml_init({.mem_size = std::size_t{2} << 20, .mem_buffer = nullptr, .no_alloc = false}));
    gguf_context* file = gguf_init_empty();
    for (const char* name : {"blk.0.ffn_norm.weight", kName}) {
      ggml_tensor* tensor = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, kValues);
      ggml_set_name(tensor, name);
      auto* values = static_cast<float*>(tensor->data);
      std::iota(values, values + kValues, name == kName ? 0.5F : 7.0F);
      gguf_add_tensor(file, tensor);
      if (name == kName) values_.assign(values, values + kValues);
    }
    ASSERT_TRUE(gguf_write_to_file(file, path_.c_str(), false));
    gguf_free(file);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(values_));
  }
  void expect_right(const Extent& extent) const {
    EXPECT_EQ(extent.path, path_);
    std::vector<std::byte> read(bytes().size());
    const Result<UniqueFd> file = open_file(path_, O_RDONLY);
    ASSERT_TRUE(file);
    ASSERT_TRUE(read_exactly(file->get(), read, extent.offset));
    EXPECT_TRUE(std::ranges::equal(read, bytes()));
  }

  const std::string path_ = testing::TempDir() + "a model " + std::to_string(::getpid()) + ".gguf";
  std::vector<float> values_;
};

TEST_F(ExtentTest, OfAMappedTensorFollowsFromItsAddress) {
  const Result<Mapping> model = Mapping::of_file(path_);
  ASSERT_TRUE(model);
  const std::span tail = model->bytes().last(bytes().size() + 31);
  const auto found = std::ranges::search(tail, bytes());
  const std::span<const std::byte> tensor(found.begin(), found.end());
  ASSERT_EQ(tensor.size(), bytes().size());
  const Result<Extent> extent = find_extent(tensor, "by any name");
  ASSERT_TRUE(extent) << extent.error().message;
  EXPECT_TRUE(extent->is_mapped);
  expect_right(*extent);
  release_mapped_pages(tensor, *extent);
  EXPECT_TRUE(std::ranges::equal(tensor, bytes())) << "the mapping reads as before";
}

TEST_F(ExtentTest, OfATensorThatWasReadIsFoundInTheOpenFile) {
  const Result<UniqueFd> open = open_file(path_, O_RDONLY);
  ASSERT_TRUE(open);
  const Result<Extent> extent = find_extent(bytes(), kName);
  ASSERT_TRUE(extent) << extent.error().message;
  EXPECT_FALSE(extent->is_mapped);
  expect_right(*extent);
}

TEST_F(ExtentTest, IsNotBelievedIfTheBytesDiffer) {
  const Result<UniqueFd> open = open_file(path_, O_RDONLY);
  values_.back() += 1;
  const Result<Extent> extent = find_extent(bytes(), kName);
  ASSERT_FALSE(extent);
  EXPECT_EQ(extent.error().code, Code::kNotFound);
}

TEST_F(ExtentTest, IsNotFoundInAFileThatIsNotOpen) { EXPECT_FALSE(find_extent(bytes(), kName)); }

TEST_F(ExtentTest, OfAFileThatIsTooShortIsRefused) {
  const Result<Mapping> model = Mapping::of_file(path_);
  ASSERT_TRUE(model);
  const std::span<const std::byte> tensor = model->bytes().last(1000);
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(model->bytes().size() - 500)), 0);
  const Result<Extent> extent = find_extent(tensor, kName);
  ASSERT_FALSE(extent);
  EXPECT_EQ(extent.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace slipstream::turbo
