// Graphs as libllama builds them, on caches whose codes may lie in a file: the results are those of
// caches in memory, to the last bit. Memory that is not held cannot be touched in these tests.
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/graph/one_thread_test_support.h"
#include "device/graph/shadow_graph.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/kv_buffer/packed_rows.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kColdCells = 1200;
constexpr std::int64_t kColdKvHeads = 2;
constexpr std::int64_t kColdHeads = 4;

struct ColdCase {
  const char* name;
  const char* scheme;
  std::int64_t head_dim;
  std::int64_t n_streams = 2;
};

std::shared_ptr<ColdStore> tiny_store() {
  return std::make_shared<ColdStore>(
      ColdOptions{.memory_bytes = 64 << 10, .directory = testing::TempDir(), .is_guarded = true});
}

// One layer with its caches. Every row that is written and every query is the same in each object.
class ColdLayer {
 public:
  ColdLayer(const ColdCase& its_case, std::shared_ptr<ColdStore> store)
      : case_(its_case), type_(parse_scheme(its_case.scheme).value(), nullptr, std::move(store)) {
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) ggml_backend_load_all();
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    backend_.reset(ggml_backend_dev_init(cpu, nullptr));
    const auto set_n_threads =
        reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(cpu), "ggml_backend_set_n_threads"));
    set_n_threads(backend_.get(), 2);
    use_known_threads(backend_.get());
    context_.reset(new_context());
    keys_ = new_cache("cache_k_l0");
    values_ = new_cache("cache_v_l0");
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), type_.handle()));
    EXPECT_NE(buffer_, nullptr);
  }

  // Writes n tokens behind those before and computes their attention. Nothing: the graph failed.
  std::optional<std::vector<float>> step(std::int64_t n) {
    begin();
    const std::int64_t n_seen = n_tokens_ + n;
    ggml_tensor* rows[2];
    for (ggml_tensor*& side : rows) {
      side = ggml_new_tensor_2d(graph_context_.get(), GGML_TYPE_F32, n_channels(),
                                n * case_.n_streams);
    }
    ggml_tensor* cells =
        ggml_new_tensor_1d(graph_context_.get(), GGML_TYPE_I64, n * case_.n_streams);
    ggml_tensor* queries = ggml_new_tensor_4d(graph_context_.get(), GGML_TYPE_F32, case_.head_dim,
                                              n, kColdHeads, case_.n_streams);
    ggml_tensor* mask =
        ggml_new_tensor_4d(graph_context_.get(), GGML_TYPE_F16, n_seen, n, 1, case_.n_streams);
    for (int side = 0; side < 2; ++side) {
      ggml_tensor* cache = side == 0 ? keys_ : values_;
      ggml_tensor* flat =
          ggml_reshape_2d(graph_context_.get(), cache, n_channels(), kColdCells * case_.n_streams);
      ggml_build_forward_expand(graph_,
                                ggml_set_rows(graph_context_.get(), flat, rows[side], cells));
    }
    ggml_tensor* attention =
        ggml_flash_attn_ext(graph_context_.get(), queries, heads_of(keys_, n_seen),
                            heads_of(values_, n_seen), mask, 0.125F, 0, 0);
    ggml_build_forward_expand(graph_, attention);
    allocate();
    std::mt19937 random(static_cast<unsigned>(n_tokens_));
    for (ggml_tensor* tensor : {rows[0], rows[1], queries}) fill(tensor, random);
    std::vector<std::int64_t> cell_idx;
    std::vector<ggml_fp16_t> hidden;
    for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
      for (std::int64_t i = 0; i < n; ++i) {
        cell_idx.push_back(stream * kColdCells + n_tokens_ + i);
        for (std::int64_t cell = 0; cell < n_seen; ++cell) {
          const bool is_hidden = cell > n_tokens_ + i;
          hidden.push_back(
              ggml_fp32_to_fp16(is_hidden ? -std::numeric_limits<float>::infinity() : 0));
        }
      }
    }
    ggml_backend_tensor_set(cells, cell_idx.data(), 0, ggml_nbytes(cells));
    ggml_backend_tensor_set(mask, hidden.data(), 0, ggml_nbytes(mask));
    if (!compute()) return std::nullopt;
    n_tokens_ = n_seen;
    std::vector<float> result(static_cast<std::size_t>(ggml_nelements(attention)));
    ggml_backend_tensor_get(attention, result.data(), 0, ggml_nbytes(attention));
    return result;
  }

  // Turns all keys by one position, as when a context is shifted.
  bool shift() {
    begin();
    const std::int64_t n_rows = kColdCells * case_.n_streams;
    ggml_tensor* positions = ggml_new_tensor_1d(graph_context_.get(), GGML_TYPE_I32, n_rows);
    ggml_tensor* heads = ggml_view_3d(graph_context_.get(), keys_, case_.head_dim, kColdKvHeads,
                                      n_rows, head_bytes(), keys_->nb[1], 0);
    ggml_build_forward_expand(
        graph_,
        ggml_rope_ext_inplace(graph_context_.get(), heads, positions, nullptr,
                              static_cast<int>(case_.head_dim), 0, 0, 10000, 1, 0, 1, 0, 0));
    allocate();
    const std::vector<std::int32_t> one(static_cast<std::size_t>(n_rows), -1);
    ggml_backend_tensor_set(positions, one.data(), 0, ggml_nbytes(positions));
    return compute();
  }

  // The rows of a stream as f16.
  std::vector<ggml_fp16_t> rows(std::int64_t stream) {
    std::vector<ggml_fp16_t> all;
    for (ggml_tensor* cache : {keys_, values_}) {
      std::vector<ggml_fp16_t> side(static_cast<std::size_t>(n_tokens_ * n_channels()));
      ggml_backend_tensor_get(cache, side.data(), static_cast<std::size_t>(stream) * cache->nb[2],
                              side.size() * sizeof(ggml_fp16_t));
      all.insert(all.end(), side.begin(), side.end());
    }
    return all;
  }
  void set_rows(std::int64_t stream, const std::vector<ggml_fp16_t>& all) {
    const std::size_t n_bytes = all.size() / 2 * sizeof(ggml_fp16_t);
    const auto at = static_cast<std::size_t>(stream) * keys_->nb[2];
    ggml_backend_tensor_set(keys_, all.data(), at, n_bytes);
    ggml_backend_tensor_set(values_, all.data() + all.size() / 2, at, n_bytes);
  }

  // The rows of a stream, packed.
  struct Packed {
    std::vector<std::byte> centres[2];
    std::vector<std::byte> rows[2];
    std::vector<std::byte> plain[2];  // of a side that is not compressed
    int side = 0;
  };
  bool pack(std::int64_t stream, Packed& packed) {
    begin_packing(
        &packed,
        [](void* user, int, int side, std::size_t n_bytes) -> void* {
          auto& self = *static_cast<Packed*>(user);
          self.centres[side].resize(n_bytes);
          return self.centres[side].data();
        },
        [](void* user, const void*, std::size_t n_rows, std::size_t,
           std::size_t row_bytes) -> void* {
          auto& self = *static_cast<Packed*>(user);
          self.rows[self.side].resize(n_rows * row_bytes);
          return self.rows[self.side].data();
        });
    exchange(stream, packed, [](ggml_tensor* cache, void* place, std::size_t at, std::size_t n) {
      ggml_backend_tensor_get(cache, place, at, n);
    });
    return end_packed_rows();
  }
  bool unpack(std::int64_t stream, Packed& packed) {
    begin_unpacking(
        &packed,
        [](void* user, int, int side, std::size_t) -> const void* {
          return static_cast<Packed*>(user)->centres[side].data();
        },
        [](void* user, const void*, std::size_t, std::size_t, std::size_t) -> const void* {
          auto& self = *static_cast<Packed*>(user);
          return self.rows[self.side].data();
        });
    exchange(stream, packed, [](ggml_tensor* cache, void* place, std::size_t at, std::size_t n) {
      ggml_backend_tensor_set(cache, place, at, n);
    });
    return end_packed_rows();
  }

  void copy_stream(std::int64_t from, std::int64_t to) {
    begin();
    for (ggml_tensor* cache : {keys_, values_}) {
      ggml_tensor* views[2];
      for (int i = 0; i < 2; ++i) {
        const auto stream = static_cast<std::size_t>(i == 0 ? from : to);
        views[i] = ggml_view_2d(graph_context_.get(), cache, n_channels(), kColdCells, cache->nb[1],
                                stream * cache->nb[2]);
        ggml_backend_view_init(views[i]);
      }
      ggml_backend_tensor_copy(views[0], views[1]);
    }
  }

  void clear() {
    ggml_backend_buffer_clear(buffer_.get(), 0);
    n_tokens_ = 0;
  }
  void set_tokens(std::int64_t n) { n_tokens_ = n; }
  [[nodiscard]] bool is_cold() const { return find_cache(keys_)->compressed()->is_cold(); }

 private:
  static ggml_context* new_context() {
    return ggml_init({.mem_size = std::size_t{1} << 18U, .mem_buffer = nullptr, .no_alloc = true});
  }
  [[nodiscard]] std::int64_t n_channels() const { return case_.head_dim * kColdKvHeads; }
  [[nodiscard]] std::size_t head_bytes() const {
    return static_cast<std::size_t>(case_.head_dim) * sizeof(ggml_fp16_t);
  }
  ggml_tensor* new_cache(const char* name) {
    ggml_tensor* cache = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, n_channels(), kColdCells,
                                            case_.n_streams);
    ggml_set_name(cache, name);
    return cache;
  }
  ggml_tensor* heads_of(ggml_tensor* cache, std::int64_t n_cells) {
    ggml_tensor* heads =
        ggml_view_4d(graph_context_.get(), cache, case_.head_dim, kColdKvHeads, n_cells,
                     case_.n_streams, head_bytes(), cache->nb[1], cache->nb[2], 0);
    return ggml_permute(graph_context_.get(), heads, 0, 2, 1, 3);
  }
  void begin() {
    memory_.reset();
    graph_context_.reset(new_context());
    graph_ = ggml_new_graph(graph_context_.get());
  }
  void allocate() {
    memory_.reset(ggml_backend_alloc_ctx_tensors(graph_context_.get(), backend_.get()));
  }
  static void fill(ggml_tensor* tensor, std::mt19937& random) {
    std::normal_distribution<float> gauss;
    std::vector<float> numbers(static_cast<std::size_t>(ggml_nelements(tensor)));
    for (float& number : numbers) number = gauss(random);
    ggml_backend_tensor_set(tensor, numbers.data(), 0, ggml_nbytes(tensor));
  }
  bool compute() {
    const Result<ggml_cgraph*> built = shadow_.build(graph_, {});
    if (!built) return false;
    EXPECT_EQ(ggml_backend_graph_compute(backend_.get(), *built), GGML_STATUS_SUCCESS);
    return shadow_.end() == GGML_STATUS_SUCCESS;
  }
  template <class Transfer>
  void exchange(std::int64_t stream, Packed& packed, const Transfer& transfer) {
    for (ggml_tensor* cache : {keys_, values_}) {
      packed.side = cache == keys_ ? 0 : 1;
      const std::size_t n_bytes = static_cast<std::size_t>(n_tokens_) * cache->nb[1];
      packed.plain[packed.side].resize(n_bytes);
      transfer(cache, packed.plain[packed.side].data(),
               static_cast<std::size_t>(stream) * cache->nb[2], n_bytes);
    }
  }

  ColdCase case_;
  KvBufferType type_;
  ggml_backend_ptr backend_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* keys_ = nullptr;
  ggml_tensor* values_ = nullptr;
  ggml_context_ptr graph_context_;
  ggml_backend_buffer_ptr memory_;
  ggml_cgraph* graph_ = nullptr;
  ShadowGraph shadow_;
  std::int64_t n_tokens_ = 0;
};

class ColdGraph : public testing::TestWithParam<ColdCase> {};

// All that a program does with a cache, side by side.
TEST_P(ColdGraph, ComputesWhatACacheInMemoryDoes) {
  const std::shared_ptr<ColdStore> store = tiny_store();
  ColdLayer hot(GetParam(), nullptr);
  ColdLayer cold(GetParam(), store);
  const auto same_steps = [&](const char* when, std::initializer_list<std::int64_t> sizes) {
    for (const std::int64_t n : sizes) {
      const auto wanted = hot.step(n);
      ASSERT_TRUE(wanted);
      ASSERT_EQ(cold.step(n), wanted) << when << ", " << n << " tokens";
    }
  };
  same_steps("prompt", {40, 512, 512, 33});
  ASSERT_TRUE(cold.is_cold());
  EXPECT_FALSE(hot.is_cold());
  same_steps("decoding", {1, 1, 1});
  ASSERT_TRUE(hot.shift());
  ASSERT_TRUE(cold.shift());
  same_steps("after a shift", {1, 1, 3});
  hot.copy_stream(0, 1);
  cold.copy_stream(0, 1);
  same_steps("after a copy", {1, 1});
  const std::vector<ggml_fp16_t> rows = hot.rows(1);
  ASSERT_EQ(cold.rows(1), rows);
  ColdLayer::Packed packed;
  ColdLayer::Packed cold_packed;
  ASSERT_TRUE(hot.pack(0, packed));
  ASSERT_TRUE(cold.pack(0, cold_packed));
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(cold_packed.centres[side], packed.centres[side]);
    ASSERT_EQ(cold_packed.rows[side], packed.rows[side]);
    ASSERT_EQ(cold_packed.plain[side], packed.plain[side]);
  }
  for (ColdLayer* layer : {&hot, &cold}) {
    layer->clear();
    layer->set_tokens(static_cast<std::int64_t>(rows.size()) / 2 / kColdKvHeads /
                      GetParam().head_dim);
    layer->set_rows(1, rows);
    ASSERT_TRUE(layer->unpack(0, packed));
  }
  same_steps("restored", {1, 1, 40});
  EXPECT_GT(store->counters().n_bytes_read, 0U);
  EXPECT_GT(store->counters().n_bytes_written, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Schemes, ColdGraph,
    testing::Values(
        ColdCase{.name = "turbo4", .scheme = "turbo4,attend=512", .head_dim = 128},
        ColdCase{.name = "turbo4_head_64", .scheme = "turbo4,attend=512", .head_dim = 64},
        ColdCase{.name = "turbo4_all", .scheme = "turbo4,attend=4096", .head_dim = 128},
        ColdCase{.name = "turbo3", .scheme = "turbo3,attend=512", .head_dim = 128},
        ColdCase{.name = "turbo3_head_64_all", .scheme = "turbo3,attend=4096", .head_dim = 64},
        ColdCase{.name = "turbo8v4", .scheme = "turbo8v4,attend=512", .head_dim = 128},
        ColdCase{.name = "turbo8v4_head_64", .scheme = "turbo8v4,attend=512", .head_dim = 64},
        ColdCase{.name = "turbo2_head_80", .scheme = "turbo2,attend=512", .head_dim = 80},
        ColdCase{.name = "plain_values", .scheme = "turbo4v0,attend=512", .head_dim = 64}),
    [](const testing::TestParamInfo<ColdCase>& test) { return std::string(test.param.name); });

constexpr ColdCase kFaultCase{.name = "faults", .scheme = "turbo4,attend=512", .head_dim = 128};

TEST(ColdGraphFaults, AReadThatFailsEndsOneComputation) {
  const std::shared_ptr<ColdStore> store = tiny_store();
  ColdLayer hot(kFaultCase, nullptr);
  ColdLayer cold(kFaultCase, store);
  for (const std::int64_t n : {512, 512, 1}) ASSERT_EQ(cold.step(n), hot.step(n));
  for (const int n_good : {0, 1, 5}) {  // reads before the one that fails
    std::atomic<int> n_reads = 0;
    store->set_faults(
        {.read = [&](const FilePiece&) { return n_reads++ < n_good ? 0 : EIO; }, .write = {}});
    EXPECT_EQ(cold.step(1), std::nullopt);
    EXPECT_GT(n_reads, n_good);
    store->set_faults({});
    const auto wanted = hot.step(1);
    ASSERT_EQ(cold.step(1), wanted);
  }
}

TEST(ColdGraphFaults, AWriteThatFailsEndsOneComputation) {
  const std::shared_ptr<ColdStore> store = tiny_store();
  ColdLayer hot(kFaultCase, nullptr);
  ColdLayer cold(kFaultCase, store);
  ASSERT_EQ(cold.step(512), hot.step(512));
  store->set_faults({.read = {}, .write = [] { return ENOSPC; }});
  EXPECT_EQ(cold.step(512), std::nullopt);
  store->set_faults({});
  for (const std::int64_t n : {512, 1, 1}) {
    const auto wanted = hot.step(n);
    ASSERT_EQ(cold.step(n), wanted);
  }
}

// A shift that stops half way would be done again for rows that have been shifted.
TEST(ColdGraphFaults, AShiftThatFailsLosesTheRowsUntilTheCacheIsCleared) {
  const std::shared_ptr<ColdStore> store = tiny_store();
  ColdLayer cold(kFaultCase, store);
  ASSERT_TRUE(cold.step(512));
  std::atomic<int> n_reads = 0;
  store->set_faults(
      {.read = [&](const FilePiece&) { return n_reads++ < 9 ? 0 : EIO; }, .write = {}});
  EXPECT_FALSE(cold.shift());
  store->set_faults({});
  EXPECT_FALSE(cold.step(1));
  EXPECT_FALSE(cold.shift());
  cold.clear();
  ColdLayer hot(kFaultCase, nullptr);
  ASSERT_EQ(cold.step(512), hot.step(512));
}

TEST(ColdGraphFaults, AStateThatCannotBeSavedIsRefused) {
  const std::shared_ptr<ColdStore> store = tiny_store();
  ColdLayer cold(kFaultCase, store);
  ASSERT_TRUE(cold.step(512));
  ColdLayer::Packed packed;
  store->set_faults({.read = [](const FilePiece&) { return EIO; }, .write = {}});
  EXPECT_FALSE(cold.pack(0, packed));
  store->set_faults({});
  EXPECT_TRUE(cold.pack(0, packed));
  store->set_faults({.read = [](const FilePiece&) { return EIO; }, .write = {}});
  EXPECT_FALSE(cold.unpack(0, packed));
}

// The program learns at load that the disk is too small.
TEST(ColdGraphFaults, ABufferWithoutRoomOnTheDiskIsRefused) {
  const auto store =
      std::make_shared<ColdStore>(ColdOptions{.memory_bytes = 1 << 20, .directory = "/proc/self"});
  KvBufferType type(parse_scheme("turbo4,attend=512").value(), nullptr, store);
  const ggml_context_ptr context(
      ggml_init({.mem_size = std::size_t{1} << 14U, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_set_name(ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, 256, 1024, 1), "cache_k_l0");
  EXPECT_EQ(ggml_backend_alloc_ctx_tensors_from_buft(context.get(), type.handle()), nullptr);
}

// What llama.cpp is told is without the codes that may lie in the file.
TEST(ColdGraphFaults, TheBufferCountsWhatStaysInMemory) {
  const auto told = [](const std::shared_ptr<ColdStore>& store) {
    KvBufferType type(parse_scheme("turbo4,attend=512").value(), nullptr, store);
    const ggml_context_ptr context(
        ggml_init({.mem_size = std::size_t{1} << 14U, .mem_buffer = nullptr, .no_alloc = true}));
    ggml_tensor* cache = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, 256, 1024, 1);
    ggml_set_name(cache, "cache_v_l0");
    return type.cache_bytes(cache);
  };
  EXPECT_EQ(told(nullptr) - told(tiny_store()), 2U * code_bytes(4, 128, 1024));
}

}  // namespace
}  // namespace slipstream::turbo
