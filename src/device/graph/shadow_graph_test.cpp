// Compares graphs that libllama does not build today with the same graphs on plain rows.
#include "device/graph/shadow_graph.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "device/graph/binding.h"
#include "device/graph/one_thread_test_support.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kChannels = 96;

class ShadowGraphTest : public testing::Test {
 protected:
  ShadowGraphTest() {
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) ggml_backend_load_all();
    backend_.reset(
        ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), nullptr));
    use_known_threads(backend_.get());
    context_.reset(
        ggml_init({.mem_size = std::size_t{1} << 20U, .mem_buffer = nullptr, .no_alloc = true}));
    graph_ = ggml_new_graph(context_.get());
  }

  ggml_tensor* new_unbound_cache(const char* name, std::int64_t n_cells) {
    ggml_tensor* cache = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F16, kChannels, n_cells);
    ggml_set_name(cache, name);
    buffers_.emplace_back(ggml_backend_buft_alloc_buffer(type_.handle(), ggml_nbytes(cache)));
    cache->buffer = buffers_.back().get();
    cache->data = ggml_backend_buffer_get_base(cache->buffer);
    return cache;
  }

  // An 8-bit cache with heads of size 48, filled with random rows.
  ggml_tensor* new_cache(const char* name, std::int64_t n_cells) {
    ggml_tensor* cache = new_unbound_cache(name, n_cells);
    EXPECT_TRUE(find_cache(cache)->bind_compressed(8, 48));
    std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(ggml_nelements(cache)));
    for (ggml_fp16_t& number : rows) number = ggml_fp32_to_fp16(gauss_(random_));
    ggml_backend_tensor_set(cache, rows.data(), 0, ggml_nbytes(cache));
    return cache;
  }

  // A copy of the cache's decoded rows in memory that the CPU backend reads itself.
  ggml_tensor* new_plain_copy(const ggml_tensor* cache) {
    ggml_tensor* copy = ggml_dup_tensor(context_.get(), cache);
    copies_.emplace_back(cache, copy);
    return copy;
  }

  // A view of all cells as attention reads them, in heads of this size.
  ggml_tensor* heads_of(ggml_tensor* cache, std::int64_t head_dim) {
    ggml_tensor* heads =
        ggml_view_3d(context_.get(), cache, head_dim, kChannels / head_dim, cache->ne[1],
                     static_cast<std::size_t>(head_dim) * sizeof(ggml_fp16_t), cache->nb[1], 0);
    return ggml_permute(context_.get(), heads, 0, 2, 1, 3);
  }

  ggml_tensor* new_attention(ggml_tensor* keys, ggml_tensor* values) {
    ggml_tensor* queries = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F32, 48, 1, 4);
    return ggml_flash_attn_ext(context_.get(), queries, heads_of(keys, 48), heads_of(values, 48),
                               nullptr, 0.15F, 0, 0);
  }

  ggml_tensor* add(ggml_tensor* result) {
    ggml_build_forward_expand(graph_, result);
    return result;
  }

  void allocate() {
    memory_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend_.get()));
    for (const auto& [cache, copy] : copies_) {
      const std::vector<ggml_fp16_t> rows = read<ggml_fp16_t>(cache);
      ggml_backend_tensor_set(copy, rows.data(), 0, ggml_nbytes(copy));
    }
  }

  void fill(ggml_tensor* tensor) {
    std::vector<float> numbers(static_cast<std::size_t>(ggml_nelements(tensor)));
    for (float& number : numbers) number = gauss_(random_);
    ggml_backend_tensor_set(tensor, numbers.data(), 0, ggml_nbytes(tensor));
  }

  void compute() {
    const Result<ggml_cgraph*> built = shadow_.build(graph_, {});
    ASSERT_TRUE(built.has_value());
    ASSERT_EQ(ggml_backend_graph_compute(backend_.get(), *built), GGML_STATUS_SUCCESS);
  }

  template <typename Number>
  static std::vector<Number> read(const ggml_tensor* tensor) {
    std::vector<Number> numbers(static_cast<std::size_t>(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, numbers.data(), 0, ggml_nbytes(tensor));
    return numbers;
  }

  std::mt19937 random_{5};
  std::normal_distribution<float> gauss_;
  ggml_context_ptr context_;
  KvBufferType type_{Scheme()};
  ggml_backend_ptr backend_;
  ggml_backend_buffer_ptr memory_;
  std::vector<ggml_backend_buffer_ptr> buffers_;
  std::vector<std::pair<const ggml_tensor*, ggml_tensor*>> copies_;
  ggml_cgraph* graph_ = nullptr;
  ShadowGraph shadow_;
};

TEST_F(ShadowGraphTest, ExpandsLayersOfDifferentSizes) {
  ggml_tensor* small = new_cache("cache_k_l0", 64);
  ggml_tensor* large = new_cache("cache_k_l1", 8192);
  const ggml_tensor* of_small = add(ggml_cont(context_.get(), heads_of(small, 48)));
  const ggml_tensor* of_large = add(ggml_cont(context_.get(), heads_of(large, 48)));
  const ggml_tensor* plain_small =
      add(ggml_cont(context_.get(), heads_of(new_plain_copy(small), 48)));
  const ggml_tensor* plain_large =
      add(ggml_cont(context_.get(), heads_of(new_plain_copy(large), 48)));
  allocate();
  compute();
  EXPECT_EQ(read<ggml_fp16_t>(of_small), read<ggml_fp16_t>(plain_small));
  EXPECT_EQ(read<ggml_fp16_t>(of_large), read<ggml_fp16_t>(plain_large));
}

// An earlier node may have expanded the written cache into another expansion buffer.
TEST_F(ShadowGraphTest, KeepsWhatTheLastNodeWrote) {
  ggml_tensor* first = new_cache("cache_k_l0", 64);
  ggml_tensor* second = new_cache("cache_k_l1", 64);
  ggml_tensor* rows = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kChannels, 64);
  add(ggml_concat(context_.get(), first, second, 1));
  add(ggml_cpy(context_.get(), rows, second));
  allocate();
  fill(rows);
  compute();
  const std::vector<float> wanted = read<float>(rows);
  const std::vector<ggml_fp16_t> got = read<ggml_fp16_t>(second);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(ggml_fp16_to_fp32(got[i]), wanted[i], 0.05) << i;
  }
}

// Tiles have the head size of the first attention. A later attention may read the same cache with
// another head size.
TEST_F(ShadowGraphTest, AnAttentionThatReadsTilesOtherwiseIsRightToo) {
  ggml_tensor* keys = new_cache("cache_k_l0", 64);
  ggml_tensor* values = new_cache("cache_v_l0", 64);
  const auto attend = [&](ggml_tensor* k, ggml_tensor* v, ggml_tensor* q) {
    return add(ggml_flash_attn_ext(context_.get(), q, heads_of(k, q->ne[0]), heads_of(v, q->ne[0]),
                                   nullptr, 0.15F, 0, 0));
  };
  std::vector<ggml_tensor*> inputs;
  std::vector<const ggml_tensor*> results;
  std::vector<const ggml_tensor*> plain_results;
  for (const std::int64_t head_dim : {48, 96}) {
    ggml_tensor* queries =
        ggml_new_tensor_3d(context_.get(), GGML_TYPE_F32, head_dim, 3, 2 * kChannels / head_dim);
    inputs.push_back(queries);
    results.push_back(attend(keys, values, queries));
    plain_results.push_back(attend(new_plain_copy(keys), new_plain_copy(values), queries));
  }
  allocate();
  for (ggml_tensor* queries : inputs) fill(queries);
  compute();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<float> wanted = read<float>(plain_results[i]);
    const std::vector<float> got = read<float>(results[i]);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      ASSERT_NEAR(got[j], wanted[j], 0.01) << "attention " << i << ", number " << j;
    }
  }
}

// Models load and decode at the same time, and each graph logs its own caches only.
TEST_F(ShadowGraphTest, SaysOfItsOwnCachesHowTheyAreBound) {
  type_.set_scheme(parse_scheme("turbo4").value());
  const ggml_tensor* of_another =
      new_attention(new_unbound_cache("cache_k_l3", 64), new_unbound_cache("cache_v_l3", 64));
  ASSERT_TRUE(bind_attention(of_another));  // as when libllama loads a model
  add(new_attention(new_unbound_cache("cache_k_l7", 64), new_unbound_cache("cache_v_l7", 64)));
  allocate();
  std::string said;
  ggml_log_set(
      [](ggml_log_level, const char* text, void* to) { *static_cast<std::string*>(to) += text; },
      &said);
  const bool is_built =
      shadow_.build(graph_, {}).has_value() && shadow_.build(graph_, {}).has_value();
  ggml_log_set(nullptr, nullptr);
  EXPECT_TRUE(is_built);
  EXPECT_EQ(said, "turbo: KV cache of layer 7: 4-bit keys, 4-bit values\n");
}

TEST_F(ShadowGraphTest, ACacheHasTheSchemeItWasAllocatedFor) {
  type_.set_scheme(parse_scheme("turbo4").value());
  ggml_tensor* keys = new_unbound_cache("cache_k_l0", 64);
  ggml_tensor* values = new_unbound_cache("cache_v_l0", 64);
  type_.set_scheme(parse_scheme("turbo8v3").value());  // for the next context
  ASSERT_TRUE(bind_attention(new_attention(keys, values)));
  EXPECT_EQ(find_cache(keys)->compressed()->shape().bits, 4);
  EXPECT_EQ(find_cache(values)->compressed()->shape().bits, 4);
}

}  // namespace
}  // namespace slipstream::turbo
