// When memory runs out, the functions that ggml calls fail, and the process goes on.
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

#include "device/fit/small_graph_test_support.h"
#include "device/kv_buffer/packed_rows.h"
#include "device/turbo_device.h"

namespace {
thread_local bool is_memory_gone = false;
}  // namespace

// These replace the library's operators; those for aligned memory are replaced in
// out_of_memory_test. They are not inlined, because the compiler would then complain that memory of
// new is given to free().
[[gnu::noinline]] void* operator new(std::size_t n_bytes) {
  void* memory = is_memory_gone ? nullptr : std::malloc(n_bytes == 0 ? 1 : n_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*n_bytes*/) noexcept {
  std::free(memory);
}

namespace slipstream::turbo {
namespace {

// While this object lives, the thread gets no memory.
struct NoMemory {
  NoMemory() { is_memory_gone = true; }
  ~NoMemory() { is_memory_gone = false; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

constexpr std::int64_t kRowChannels = 256;
constexpr std::int64_t kRowCount = 300;

// A cache tensor of 128-number heads in a buffer of the device.
class OneCache {
 public:
  OneCache(KvBufferType& type, const char* name)
      : context_(ggml_init({.mem_size = 1 << 14, .mem_buffer = nullptr, .no_alloc = true})),
        tensor_(ggml_new_tensor_2d(context_.get(), GGML_TYPE_F16, kRowChannels, kRowCount)) {
    ggml_set_name(tensor_, name);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), type.handle()));
  }

  ggml_tensor* tensor() { return tensor_; }
  void set(const std::vector<ggml_fp16_t>& rows) {
    ggml_backend_tensor_set(tensor_, rows.data(), 0, rows.size() * sizeof(ggml_fp16_t));
  }
  std::vector<ggml_fp16_t> get() {
    std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(kRowChannels * kRowCount), 1);
    read_into(rows);
    return rows;
  }
  void read_into(std::vector<ggml_fp16_t>& rows) {
    ggml_backend_tensor_get(tensor_, rows.data(), 0, rows.size() * sizeof(ggml_fp16_t));
  }

 private:
  ggml_context_ptr context_;
  ggml_tensor* tensor_;
  ggml_backend_buffer_ptr buffer_;
};

std::vector<ggml_fp16_t> wave() {
  std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(kRowChannels * kRowCount));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = ggml_fp32_to_fp16(static_cast<float>(i * 7919 % 1000) / 100 - 5);
  }
  return rows;
}

TEST(NoMemory, GivesNoBufferAndNoBackend) {
  ggml_backend_load_all();
  TurboDevice device(nullptr, parse_scheme("turbo4,0-1=turbo3").value(),
                     parse_expert_options("4G").value());
  const std::vector<ggml_backend_buffer_type_t> types = {device.caches().handle(),
                                                         device.experts().handle()};
  OneCache cache(device.caches(), "cache_k_l0");
  const std::size_t n_bytes = ggml_backend_buft_get_alloc_size(types[0], cache.tensor());
  const NoMemory gone;
  EXPECT_EQ(ggml_backend_buft_get_alloc_size(types[0], cache.tensor()), n_bytes);
  for (const ggml_backend_buffer_type_t type : types) {
    EXPECT_EQ(type->iface.alloc_buffer(type, 1 << 20), nullptr);
  }
  EXPECT_EQ(device.handle()->iface.init_backend(device.handle(), nullptr), nullptr);
}

TEST(NoMemory, ABackendIsFreedAndTheFitFileLeftUnwritten) {
  ggml_backend_load_all();
  const std::string path = testing::TempDir() + "/no_memory_test.keys";
  TurboDevice device(nullptr, parse_scheme("f16").value(), {});
  auto run = std::make_shared<FitRun>(path);
  SmallGraph graph(rope(GGML_ROPE_TYPE_NEOX));
  (void)graph.compute(run);
  device.exchange_fit_run(run);
  ggml_backend_t backend = ggml_backend_dev_init(device.handle(), nullptr);
  ASSERT_NE(backend, nullptr);
  {
    const NoMemory gone;
    ggml_backend_free(backend);
    device.exchange_fit_run(nullptr);
    run.reset();  // the destructor would write the file
  }
}

TEST(NoMemory, AnUnknownCacheReadsAsZeroes) {
  KvBufferType type(parse_scheme("turbo4").value());
  OneCache cache(type, "cache_v_l0");
  std::vector<ggml_fp16_t> rows = wave();
  const std::vector<ggml_fp16_t> written = wave();
  {
    const NoMemory gone;
    cache.set(written);
    cache.read_into(rows);
  }
  EXPECT_EQ(rows, std::vector<ggml_fp16_t>(rows.size()));
}

// The rows themselves need no memory. What is lost is only what makes keys more precise.
TEST(NoMemory, RowsAreStoredAllTheSame) {
  KvBufferType type(parse_scheme("turbo8").value());
  for (const char* name : {"cache_v_l0", "cache_k_l0"}) {
    OneCache plenty(type, name);
    OneCache none(type, name);
    for (OneCache* cache : {&plenty, &none}) {
      ASSERT_TRUE(find_cache(cache->tensor())->bind_compressed(8, 128));
    }
    const std::vector<ggml_fp16_t> rows = wave();
    plenty.set(rows);
    std::vector<ggml_fp16_t> back(rows.size());
    {
      const NoMemory gone;
      none.set(rows);
      none.read_into(back);
    }
    const std::vector<ggml_fp16_t> wanted = plenty.get();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_NEAR(ggml_fp16_to_fp32(back[i]), ggml_fp16_to_fp32(wanted[i]), 0.2) << name << i;
    }
  }
}

// It took as many bytes as the whole cache would have as f16.
TEST(NoMemory, AValueIsSetEverywhere) {
  KvBufferType type(parse_scheme("turbo8").value());
  OneCache cache(type, "cache_k_l0");
  ASSERT_TRUE(find_cache(cache.tensor())->bind_compressed(8, 128));
  {
    const NoMemory gone;
    ggml_backend_buffer_clear(cache.tensor()->buffer, 0x3C);
  }
  const float wanted = ggml_fp16_to_fp32(0x3C3C);
  for (const ggml_fp16_t number : cache.get()) {
    ASSERT_NEAR(ggml_fp16_to_fp32(number), wanted, 0.05);
  }
}

const void* no_centres(void* /*user*/, int /*layer*/, int /*side*/, std::size_t /*n_bytes*/) {
  throw std::bad_alloc();
}
const void* no_rows(void* /*user*/, const void* /*place*/, std::size_t /*n_rows*/,
                    std::size_t /*row_bytes*/, std::size_t /*packed_bytes*/) {
  return nullptr;
}

TEST(NoMemory, AnExchangeOfPackedRowsFails) {
  KvBufferType type(parse_scheme("turbo4").value());
  OneCache cache(type, "cache_k_l0");
  ASSERT_TRUE(find_cache(cache.tensor())->bind_compressed(4, 128));
  const std::vector<ggml_fp16_t> rows = wave();
  begin_unpacking(nullptr, no_centres, no_rows);
  cache.set(rows);
  EXPECT_FALSE(end_packed_rows());
}

}  // namespace
}  // namespace slipstream::turbo
