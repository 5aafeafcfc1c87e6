// Measures how fast attention reads the KV cache, compared with this machine's read bandwidth.
//
//   attention_benchmark [--benchmark_filter=decode/turbo4]
//
// decode/SCHEME/gG/dD/tT: attention of one token with G query heads per KV head and head size D
// over 32K tokens, on T threads. The KV caches are larger than the processor's cache. "of_read" is
// the share of the read bandwidth, which is measured just before on the same number of threads.
// decode/.../n131072: over so many tokens. prompt/...: of the last 128 tokens, with fewer heads.
// These forget what the processor's caches hold before each turn, as a model's other layers do.
// "best_cpu_ms": the processor's time on all threads, the least of all turns.
#include <benchmark/benchmark.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "device/attention/attention.h"
#include "device/attention/benchmark_support.h"
#include "device/attention/kernel_choice.h"
#include "device/graph/binding.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kTokens = 32768;
constexpr std::int64_t kPromptRows = 128;

constexpr std::size_t kReadBytes = std::size_t{1} << 29;

// Reads more than the processor's caches hold.
void read_much(int n_threads) {
  static const ReadMemory kMemory(kReadBytes);
  kMemory.read(n_threads);
}

// Bytes per second that n_threads threads read together, best of five.
double read_bandwidth(int n_threads) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double seconds = seconds_of([&] { read_much(n_threads); });
    best = std::max(best, static_cast<double>(kReadBytes) / seconds);
  }
  return best;
}

// One layer of a KV cache filled with random rows, and an attention of the last n_rows rows over it.
class Layer {
 public:
  Layer(const std::string& scheme, std::int64_t group, std::int64_t head_dim, std::int64_t n_heads,
        std::int64_t n_rows, std::int64_t n_tokens)
      : type_(parse_scheme(scheme).value()) {
    caches_.reset(ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true}));
    context_.reset(
        ggml_init({.mem_size = static_cast<std::size_t>(
                                   n_rows * (group * n_heads * head_dim * 8 + n_tokens * 2 + 8)) +
                               (1 << 20),
                   .mem_buffer = nullptr,
                   .no_alloc = false}));
    ggml_tensor* sides[2];
    for (int side = 0; side < 2; ++side) {
      sides[side] =
          ggml_new_tensor_3d(caches_.get(), GGML_TYPE_F16, head_dim * n_heads, n_tokens, 1);
      ggml_set_name(sides[side], side == 0 ? "cache_k_l0" : "cache_v_l0");
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(caches_.get(), type_.handle()));
    ggml_tensor* query =
        ggml_new_tensor_4d(context_.get(), GGML_TYPE_F32, head_dim, n_rows, group * n_heads, 1);
    std::mt19937 random(1);
    std::normal_distribution<float> gauss;
    for (std::int64_t i = 0; i < ggml_nelements(query); ++i) {
      static_cast<float*>(query->data)[i] = gauss(random);
    }
    ggml_tensor* mask = ggml_new_tensor_4d(context_.get(), GGML_TYPE_F16, n_tokens, n_rows, 1, 1);
    std::fill_n(static_cast<ggml_fp16_t*>(mask->data), ggml_nelements(mask), ggml_fp16_t{0});
    const auto view = [&](ggml_tensor* cache) {
      ggml_tensor* rows =
          ggml_view_4d(context_.get(), cache, head_dim, n_heads, n_tokens, 1,
                       ggml_row_size(cache->type, head_dim), cache->nb[1], cache->nb[2], 0);
      return ggml_permute(context_.get(), rows, 0, 2, 1, 3);
    };
    op_ = ggml_flash_attn_ext(context_.get(), query, view(sides[0]), view(sides[1]), mask,
                              1 / std::sqrt(static_cast<float>(head_dim)), 0, 0);
    if (!bind_attention(op_)) std::abort();
    for (ggml_tensor* side : sides) fill(*find_cache(side)->compressed(), random);
    task_ = {.op = op_,
             .keys = find_cache(sides[0]),
             .values = find_cache(sides[1]),
             .first_stream = 0,
             .plan = &plan_};
    if (n_rows > 1) {
      task_.own_cells = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I64, n_rows);
      auto* cells = static_cast<std::int64_t*>(task_.own_cells->data);
      std::iota(cells, cells + n_rows, n_tokens - n_rows);
    }
    n_bytes_ = CompressedCache::n_bytes(task_.keys->compressed()->shape()) +
               CompressedCache::n_bytes(task_.values->compressed()->shape());
  }

  void plan(int n_threads) {
    plan_.reset(op_);
    plan_.make(n_threads);
  }
  void run(int thread) {
    if (!run_attention(task_, thread)) std::abort();
  }
  [[nodiscard]] std::size_t n_bytes() const { return n_bytes_; }

 private:
  static void fill(CompressedCache& cache, std::mt19937& random) {
    std::normal_distribution<float> gauss;
    const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
    std::vector<float> pool(head_dim + 4096);
    for (float& value : pool) value = gauss(random);
    for (std::int64_t row = 0; row < cache.shape().n_cells; ++row) {
      for (std::int64_t head = 0; head < cache.shape().n_heads; ++head) {
        cache.write(row, head, std::span<const float>(pool).subspan(random() % 4096, head_dim));
      }
    }
  }

  KvBufferType type_;
  ggml_context_ptr caches_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* op_ = nullptr;
  SharedPlan plan_;
  AttentionTask task_{};
  std::size_t n_bytes_ = 0;
};

void decode(benchmark::State& state, const std::string& scheme, std::int64_t group,
            std::int64_t head_dim, int n_threads) {
  Layer layer(scheme, group, head_dim, 64 * 128 / head_dim, 1, kTokens);
  const double bandwidth = read_bandwidth(n_threads);
  layer.plan(n_threads);
  double seconds = 0;
  double best = 1e9;
  for (auto _ : state) {
    const double once =
        seconds_of([&] { on_threads(n_threads, [&](int thread) { layer.run(thread); }); });
    best = std::min(best, once);
    seconds += once;
    state.SetIterationTime(once);
  }
  const auto n_bytes = static_cast<double>(layer.n_bytes());
  const auto n_iterations = static_cast<double>(state.iterations());
  state.counters["GB/s"] = n_bytes * n_iterations / seconds / 1e9;
  state.counters["of_read"] = n_bytes * n_iterations / seconds / bandwidth;
  state.counters["best_of_read"] = n_bytes / best / bandwidth;
  state.counters["read_GB/s"] = bandwidth / 1e9;
}

void at_depth(benchmark::State& state, const std::string& scheme, int n_threads,
              std::int64_t n_rows, std::int64_t n_tokens) {
  Layer layer(scheme, 2, 128, n_rows == 1 ? 16 : 4, n_rows, n_tokens);
  layer.plan(n_threads);
  double best = 1e9;
  for (auto _ : state) {
    read_much(n_threads);
    const double before = processor_seconds();
    state.SetIterationTime(
        seconds_of([&] { on_threads(n_threads, [&](int thread) { layer.run(thread); }); }));
    best = std::min(best, processor_seconds() - before);
  }
  state.counters["best_cpu_ms"] = best * 1e3;
}

void encode(benchmark::State& state, int bits, int head_dim) {
  CompressedCache cache = CompressedCache::create({.side = Side::kValue,
                                                   .bits = bits,
                                                   .head_dim = head_dim,
                                                   .n_heads = 1,
                                                   .n_cells = 1024,
                                                   .n_streams = 1})
                              .value();
  std::mt19937 random(1);
  std::normal_distribution<float> gauss;
  std::vector<float> pool(static_cast<std::size_t>(head_dim) + 1024);
  for (float& value : pool) value = gauss(random);
  std::int64_t row = 0;
  for (auto _ : state) {
    cache.write(row, 0,
                std::span<const float>(pool).subspan(static_cast<std::size_t>(row),
                                                     static_cast<std::size_t>(head_dim)));
    row = (row + 1) % 1024;
  }
}

void register_all() {
  for (const char* scheme : {"turbo4", "turbo4,attend=4096", "turbo4,attend=512", "turbo8v4",
                             "turbo3", "turbo8", "turbo2"}) {
    for (const int group : {1, 2, 4, 8}) {
      for (const int head_dim : {128, 64, 80, 96, 256}) {
        for (const int n_threads : {1, 2}) {
          benchmark::RegisterBenchmark(
              format_text("decode/{}/g{}/d{}/t{}", scheme, group, head_dim, n_threads),
              [=](benchmark::State& state) { decode(state, scheme, group, head_dim, n_threads); })
              ->UseManualTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
  for (const char* scheme : {"turbo4", "turbo4,attend=4096"}) {
    for (const std::int64_t n_tokens : {8192, 32768, 131072, 262144}) {
      for (const auto& [what, n_rows] :
           {std::pair{"decode", std::int64_t{1}}, std::pair{"prompt", kPromptRows}}) {
        benchmark::RegisterBenchmark(
            format_text("{}/{}/g2/d128/t2/n{}", what, scheme, n_tokens),
            [=](benchmark::State& state) { at_depth(state, scheme, 2, n_rows, n_tokens); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  for (const int bits : {2, 3, 4, 8}) {
    benchmark::RegisterBenchmark(format_text("encode/{}", bits),
                                 [=](benchmark::State& state) { encode(state, bits, 128); });
  }
}

}  // namespace
}  // namespace slipstream::turbo

int main(int argc, char** argv) {
  return slipstream::turbo::run_benchmarks(argc, argv, slipstream::turbo::register_all);
}
