// Several devices in one process: each has its own settings, and models load and decode at the same
// time. The thread sanitizer checks the latter (preset "tsan").
#include "device/turbo_device.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "device/fit/small_graph_test_support.h"

namespace slipstream::turbo {
namespace {

Scheme scheme(const char* name) { return parse_scheme(name).value(); }

// A cache tensor in a buffer of the device, as libllama makes it.
class DeviceCache {
 public:
  explicit DeviceCache(TurboDevice& device)
      : context_(ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true})),
        tensor_(ggml_new_tensor_2d(context_.get(), GGML_TYPE_F16, 256, 8192)) {
    ggml_set_name(tensor_, "cache_k_l0");
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
        context_.get(), ggml_backend_dev_buffer_type(device.handle())));
  }
  [[nodiscard]] const ggml_tensor* tensor() const { return tensor_; }
  [[nodiscard]] std::size_t n_bytes() const { return ggml_backend_buffer_get_size(buffer_.get()); }

 private:
  ggml_context_ptr context_;
  ggml_tensor* tensor_;
  ggml_backend_buffer_ptr buffer_;
};

TEST(TurboDevice, HasASchemeOfItsOwn) {
  TurboDevice narrow(nullptr, scheme("turbo3"), {});
  TurboDevice wide(nullptr, scheme("turbo8"), {});
  const DeviceCache small(narrow);
  const DeviceCache large(wide);
  EXPECT_LT(small.n_bytes(), large.n_bytes());
  EXPECT_EQ(settings_of(small.tensor()).scheme.name(), "turbo3");
  EXPECT_EQ(settings_of(large.tensor()).scheme.name(), "turbo8");
}

TEST(TurboDevice, AChangeOfSchemeIsForLaterBuffers) {
  TurboDevice device(nullptr, scheme("turbo4"), {});
  const DeviceCache before(device);
  device.caches().set_scheme(scheme("turbo8v4"));
  const DeviceCache after(device);
  EXPECT_EQ(settings_of(before.tensor()).scheme.name(), "turbo4");
  EXPECT_EQ(settings_of(after.tensor()).scheme.name(), "turbo8v4");
}

TEST(TurboDevice, TakesItsOwnBuffersAndNobodyElses) {
  ggml_backend_load_all();
  TurboDevice device(nullptr, scheme("turbo4"), {});
  TurboDevice other(nullptr, scheme("turbo4"), {});
  const auto takes = [](TurboDevice& one, TurboDevice& of) {
    return ggml_backend_dev_supports_buft(one.handle(), ggml_backend_dev_buffer_type(of.handle()));
  };
  EXPECT_TRUE(takes(device, device));
  EXPECT_FALSE(takes(device, other));
}

TEST(TurboDevice, StreamsExpertsOnlyWhereItWasAsked) {
  TurboDevice plain(nullptr, scheme("f16"), {});
  EXPECT_EQ(plain.extra_buffer_types()[0], nullptr);
  TurboDevice streaming(nullptr, scheme("f16"), parse_expert_options("4G").value());
  EXPECT_EQ(streaming.extra_buffer_types()[0], streaming.experts().handle());
  EXPECT_EQ(streaming.extra_buffer_types()[1], nullptr);
}

// As a view comes over RPC by itself: with an address and a name of its own.
TEST(TurboDevice, KnowsTheCacheOfAViewThatDoesNotNameIt) {
  TurboDevice device(nullptr, scheme("turbo4"), {});
  const DeviceCache cache(device);
  constexpr std::size_t kRowBytes = 256 * sizeof(ggml_fp16_t);
  const std::vector<ggml_fp16_t> rows(2 * std::size_t{256}, ggml_fp32_to_fp16(3));
  const std::size_t n_bytes = rows.size() * sizeof(ggml_fp16_t);
  ggml_tensor whole = *cache.tensor();
  ggml_tensor view = *cache.tensor();
  ggml_set_name(&view, "cache_k_l0 (view)");
  view.ne[1] = 8000;  // of the last rows
  view.data = static_cast<char*>(view.data) + 192 * kRowBytes;

  std::vector<ggml_fp16_t> read(rows.size());
  ggml_backend_tensor_set(&whole, rows.data(), 200 * kRowBytes, n_bytes);
  ggml_backend_tensor_get(&view, read.data(), 8 * kRowBytes, n_bytes);
  EXPECT_EQ(read, rows);
  ggml_backend_tensor_set(&view, rows.data(), 100 * kRowBytes, n_bytes);
  ggml_backend_tensor_get(&whole, read.data(), 292 * kRowBytes, n_bytes);
  EXPECT_EQ(read, rows);
}

TEST(TurboDevice, AProfileThatCannotBeReadIsNone) {
  TurboDevice device(nullptr, scheme("turbo4"), {});
  EXPECT_FALSE(device.use_keys("/nonexistent.keys"));
  EXPECT_EQ(device.caches().settings().keys, nullptr);
  EXPECT_TRUE(device.use_keys(""));
}

TEST(TurboDevice, ModelsLoadAndDecodeAtOnce) {
  constexpr int kRounds = 8;
  ggml_backend_load_all();
  const auto run_model = [](const char* name) {
    for (int round = 0; round < kRounds; ++round) {
      TurboDevice device(nullptr, scheme(name), parse_expert_options("4G").value());
      const DeviceCache cache(device);
      EXPECT_EQ(settings_of(cache.tensor()).scheme.name(), name);
      SmallGraph graph(rope(GGML_ROPE_TYPE_NEOX), 1, name);
      use_one_thread(graph.backend());
      graph.compute();
      graph.compute();
    }
  };
  TurboDevice shared(nullptr, scheme("turbo4"), {});
  const auto change_settings = [&shared] {
    for (int round = 0; round < 4 * kRounds; ++round) {
      shared.caches().set_scheme(scheme(round % 2 == 0 ? "turbo8" : "turbo3"));
      (void)shared.exchange_fit_run(
          std::make_shared<FitRun>(testing::TempDir() + "/turbo_device_test.keys"));
    }
  };
  const auto use_settings = [&shared] {
    for (int round = 0; round < 4 * kRounds; ++round) {
      EXPECT_FALSE(shared.caches().settings().scheme.name().empty());
      SmallGraph graph(rope(GGML_ROPE_TYPE_NEOX), 1, "turbo4");
      use_one_thread(graph.backend());
      graph.compute(shared.fit_run());
    }
  };
  std::vector<std::jthread> threads;
  threads.emplace_back(run_model, "turbo4");
  threads.emplace_back(run_model, "turbo8v4,0-1=turbo3");
  threads.emplace_back(change_settings);
  threads.emplace_back(use_settings);
}

}  // namespace
}  // namespace slipstream::turbo
