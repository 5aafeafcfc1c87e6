// Measures products of our kernels beside stock's, on the same threads of ggml.
//
//   product_benchmark [--benchmark_filter=q8_0/.*/n512/t1]
//
// GGML_TURBO_KERNELS limits our kernels. PRODUCT_BENCHMARK_STOCK is the file of another CPU backend
// of ggml, such as libggml-cpu-haswell.so, so that stock's are limited too.
//
// TYPE/RxK/nN/tT: R rows of K weights times N columns on T threads. In every iteration each runs
// once: ours for many columns, ours for few ("dots"), stock with plain rows, and stock with each of
// its own layouts that takes the type (CPU_REPACK, AMX). Counters are GFLOP/s of the best
// iteration, because other programs can only make one slower; "to_stock" is ours to the best of
// stock's, "dots_to_stock" likewise; "of_peak" is ours to what the same threads reach in registers
// with floats, or with tiles on AMX. "..._error" is the root mean square error of the first row of
// the result, to that of the row itself, with the weights as they are.
#include <benchmark/benchmark.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "contract/environment.h"
#include "device/attention/kernel_choice.h"
#include "device/attention/scratch.h"
#include "device/products/amx_product.h"
#include "device/products/few_columns.h"
#include "device/products/panel_kernels.h"
#include "device/products/product.h"
#include "device/products/product_test_support.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace slipstream::turbo {
namespace {

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Work on one thread is measured in the thread's own time: what other programs take does not count.
double seconds_of(int n_threads, const std::function<void()>& work) {
  const clockid_t clock = n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = now(clock);
  work();
  return now(clock) - start;
}

// --- the peak

constexpr int kPeakRounds = 20000;

// Flops of kPeakRounds rounds of four products of tiles that are in registers.
#if defined(__x86_64__)
__attribute__((target("amx-bf16,amx-tile"))) double tile_rounds() {
  const TileScope scope(true, product_tile_config());
  for (int i = 0; i < kPeakRounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  return kPeakRounds * 4.0 * kTileSide * kTileNumbers * 2;
}
#else
double tile_rounds() { return 0; }
#endif

// The same for the kernel of floats, from the first cache.
double float_rounds() {
  const auto [rows, columns] = float_shape();
  Scratch<float> group;
  Scratch<float> block;
  Scratch<float> result;
  constexpr std::int64_t kInner = 64;
  group.resize(static_cast<std::size_t>(rows * kInner));
  block.resize(static_cast<std::size_t>(columns * kFloatSlice));
  result.resize(static_cast<std::size_t>(rows * columns));
  std::fill_n(group.data(), rows * kInner, 0.0F);
  std::fill_n(block.data(), columns * kFloatSlice, 0.0F);
  for (int i = 0; i < kPeakRounds; ++i) {
    multiply_floats({.group = group.data(),
                     .block = block.data(),
                     .n_inner = kInner,
                     .n_rows = rows,
                     .n_columns = columns,
                     .result = result.data(),
                     .result_stride = static_cast<std::size_t>(rows),
                     .is_first = true});
  }
  return kPeakRounds * 2.0 * static_cast<double>(rows * columns * kInner);
}

double peak_gflops(int n_threads) {
  const auto rounds = use_amx() && has_amx_bf16() ? tile_rounds : float_rounds;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    double flops = 0;
    const double seconds = seconds_of(n_threads, [&] {
      std::vector<std::jthread> threads;
      for (int i = 1; i < n_threads; ++i) threads.emplace_back(rounds);
      flops = rounds() * n_threads;
    });
    best = std::max(best, flops / seconds / 1e9);
  }
  return best;
}

// --- products

struct Shape {
  ggml_type type;
  std::int64_t n_rows;
  std::int64_t n_inner;
  std::int64_t n_columns;

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(n_rows * n_inner) * static_cast<double>(n_columns);
  }
};

ggml_backend_dev_t cpu() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

template <typename Function>
Function cpu_function(const char* name) {
  return reinterpret_cast<Function>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu()), name));
}

// A graph on ggml's CPU backend, and a name for its times.
struct Contender {
  std::string name;
  ggml_context_ptr context;
  std::vector<ggml_backend_buffer_ptr> buffers;
  ggml_cgraph* graph = nullptr;
  std::vector<double> gflops = {};

  Contender(std::string its_name, ggml_context* its_context)
      : name(std::move(its_name)), context(its_context) {}
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;
  // Before every run.
  virtual void renew() {}
};

ggml_context* make_context() {
  return ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
}

ggml_tensor* make_columns(Contender& contender, const Shape& shape,
                          const std::vector<float>& columns) {
  ggml_tensor* tensor =
      ggml_new_tensor_2d(contender.context.get(), GGML_TYPE_F32, shape.n_inner, shape.n_columns);
  contender.buffers.emplace_back(
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(tensor) + 4096));
  ggml_backend_tensor_alloc(contender.buffers.back().get(), tensor,
                            ggml_backend_buffer_get_base(contender.buffers.back().get()));
  std::memcpy(tensor->data, columns.data(), ggml_nbytes(tensor));
  return tensor;
}

void make_graph(Contender& contender, std::initializer_list<ggml_tensor*> nodes) {
  contender.graph = ggml_new_graph(contender.context.get());
  for (ggml_tensor* node : nodes) {
    contender.buffers.emplace_back(
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(node) + 4096));
    ggml_backend_tensor_alloc(contender.buffers.back().get(), node,
                              ggml_backend_buffer_get_base(contender.buffers.back().get()));
    node->flags |= GGML_TENSOR_FLAG_COMPUTE;
    ggml_graph_add_node(contender.graph, node);
  }
}

// null: stock does not keep this type in such a buffer.
std::unique_ptr<Contender> stock_with(ggml_backend_buffer_type_t layout, const Shape& shape,
                                      const std::vector<std::byte>& weights,
                                      const std::vector<float>& columns) {
  auto stock = std::make_unique<Contender>(ggml_backend_buft_name(layout), make_context());
  ggml_tensor* rows =
      ggml_new_tensor_2d(stock->context.get(), shape.type, shape.n_inner, shape.n_rows);
  ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(
      layout, ggml_backend_buft_get_alloc_size(layout, rows) + 4096));
  if (!buffer) return nullptr;
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  ggml_backend_tensor_alloc(buffer.get(), rows, ggml_backend_buffer_get_base(buffer.get()));
  ggml_tensor* product =
      ggml_mul_mat(stock->context.get(), rows, make_columns(*stock, shape, columns));
  if (!ggml_backend_dev_supports_op(cpu(), product)) return nullptr;
  ggml_backend_tensor_set(rows, weights.data(), 0, weights.size());
  stock->buffers.push_back(std::move(buffer));
  make_graph(*stock, {product});
  return stock;
}

// Ours, as the device would run it: two custom nodes.
template <class Task>
struct Own : Contender {
  Scratch<std::byte> packed;
  std::unique_ptr<Task> task;
  Product product{};

  Own(std::string its_name, std::size_t n_bytes, const Shape& shape,
      const std::vector<std::byte>& weights, const std::vector<float>& columns)
      : Contender(std::move(its_name), make_context()) {
    packed.resize(n_bytes);
    const auto node = [&](ggml_custom_op_t function) {
      return ggml_custom_4d(context.get(), GGML_TYPE_F32, shape.n_rows, shape.n_columns, 1, 1,
                            nullptr, 0, function, GGML_N_TASKS_MAX, this);
    };
    ggml_tensor* pack = node([](ggml_tensor*, int thread_idx, int n_threads, void* ours) {
      static_cast<Own*>(ours)->task->pack_columns(thread_idx, n_threads);
    });
    ggml_tensor* result = node([](ggml_tensor*, int, int n_threads, void* ours) {
      static_cast<Own*>(ours)->task->multiply(n_threads);
    });
    make_graph(*this, {pack, result});
    product = {.type = shape.type,
               .weights = weights.data(),
               .row_bytes = ggml_row_size(shape.type, shape.n_inner),
               .n_rows = shape.n_rows,
               .n_inner = shape.n_inner,
               .columns = columns.data(),
               .column_stride = static_cast<std::size_t>(shape.n_inner),
               .n_columns = shape.n_columns,
               .result = static_cast<float*>(result->data),
               .result_stride = static_cast<std::size_t>(shape.n_rows)};
  }
  void renew() override { task = std::make_unique<Task>(product, packed.data()); }
};

// Products with more columns are not for dot products.
constexpr std::int64_t kDotColumns = 32;

// The first row of the result, in f64.
std::vector<double> first_row(const Shape& shape, const std::vector<std::byte>& weights,
                              const std::vector<float>& columns) {
  std::vector<float> row(static_cast<std::size_t>(shape.n_inner));
  ggml_get_type_traits(shape.type)->to_float(weights.data(), row.data(), shape.n_inner);
  std::vector<double> sums;
  for (auto column = columns.begin(); column != columns.end(); column += shape.n_inner) {
    sums.push_back(std::inner_product(row.begin(), row.end(), column, 0.0));
  }
  return sums;
}

double error_of(const Contender& contender, const std::vector<double>& expected) {
  const ggml_tensor* result = ggml_graph_node(contender.graph, -1);
  const auto n_rows = static_cast<std::size_t>(result->ne[0]);
  double error = 0;
  double length = 0;
  for (std::size_t column = 0; column < expected.size(); ++column) {
    const double number = static_cast<const float*>(result->data)[column * n_rows];
    error += (number - expected[column]) * (number - expected[column]);
    length += expected[column] * expected[column];
  }
  return std::sqrt(error / length);
}

void measure(benchmark::State& state, const Shape& shape, int n_threads) {
  std::vector<std::byte> weights(ggml_row_size(shape.type, shape.n_inner) *
                                 static_cast<std::size_t>(shape.n_rows));
  // One row is quantised and repeated: some types take long to quantise.
  const std::size_t row_bytes = ggml_row_size(shape.type, shape.n_inner);
  fill_weights(shape.type, 1, shape.n_inner, 1, std::span(weights).first(row_bytes));
  for (std::size_t at = row_bytes; at < weights.size(); at += row_bytes) {
    std::memcpy(weights.data() + at, weights.data(), row_bytes);
  }
  const std::vector<float> columns =
      random_floats(static_cast<std::size_t>(shape.n_inner * shape.n_columns), 2);

  const ggml_backend_ptr backend(ggml_backend_dev_init(cpu(), nullptr));
  cpu_function<ggml_backend_set_n_threads_t>("ggml_backend_set_n_threads")(backend.get(),
                                                                           n_threads);
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(std::make_unique<Own<ProductTask>>(
      "ours", n_packed_bytes(shape.n_inner, shape.n_columns), shape, weights, columns));
  const bool has_dots = shape.n_columns <= kDotColumns && can_dot(shape.type);
  if (has_dots) {
    all.push_back(std::make_unique<Own<DotTask>>(
        "dots", n_dot_bytes(shape.n_inner, shape.n_columns), shape, weights, columns));
  }
  all.push_back(stock_with(ggml_backend_cpu_buffer_type(), shape, weights, columns));
  auto* layouts =
      cpu_function<ggml_backend_dev_get_extra_bufts_t>("ggml_backend_dev_get_extra_bufts")(cpu());
  for (; layouts != nullptr && *layouts != nullptr; ++layouts) {
    if (auto stock = stock_with(*layouts, shape, weights, columns)) all.push_back(std::move(stock));
  }

  const double peak = peak_gflops(n_threads);
  // Iterations of a product that takes a millisecond or less say little alone.
  const int n_repeats = std::clamp(static_cast<int>(2e8 / shape.flops()), 1, 100);
  for (auto _ : state) {
    for (const auto& contender : all) {
      const double seconds = seconds_of(n_threads, [&] {
        for (int i = 0; i < n_repeats; ++i) {
          contender->renew();
          ggml_backend_graph_compute(backend.get(), contender->graph);
        }
      });
      contender->gflops.push_back(shape.flops() * n_repeats / seconds / 1e9);
      if (contender == all.front()) state.SetIterationTime(seconds / n_repeats);
    }
  }
  const std::vector<double> expected = first_row(shape, weights, columns);
  double stock = 0;
  for (const auto& contender : all) {
    const double gflops = std::ranges::max(contender->gflops);
    state.counters[contender->name] = gflops;
    state.counters[contender->name + "_error"] = error_of(*contender, expected);
    if (contender->name != "ours" && contender->name != "dots") stock = std::max(stock, gflops);
  }
  state.counters["to_stock"] = state.counters["ours"] / stock;
  if (has_dots) state.counters["dots_to_stock"] = state.counters["dots"] / stock;
  state.counters["of_peak"] = state.counters["ours"] / peak;
  state.counters["peak"] = peak;
}

void register_all() {
  for (const ggml_type type : kProductTypes) {
    // The last is larger than caches, as a model is.
    for (const auto [n_rows, n_inner] :
         {std::array{3072, 1024}, std::array{1024, 3072}, std::array{151936, 1024}}) {
      for (const int n_columns : {1, 2, 4, 8, 16, 32, 128, 512, 2048}) {
        if (n_rows > 3072 && n_columns > kDotColumns) continue;
        for (const int n_threads : {1, 2}) {
          const Shape shape{
              .type = type, .n_rows = n_rows, .n_inner = n_inner, .n_columns = n_columns};
          benchmark::RegisterBenchmark(
              format_text("{}/{}x{}/n{}/t{}", ggml_type_name(type), n_rows, n_inner, n_columns,
                          n_threads),
              [=](benchmark::State& state) { measure(state, shape, n_threads); })
              ->UseManualTime()
              ->Iterations(9)
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo

int main(int argc, char** argv) {
  using namespace slipstream::turbo;
  if (const char* stock = std::getenv("PRODUCT_BENCHMARK_STOCK"); stock != nullptr) {
    ggml_backend_load(stock);
  } else {
    ggml_backend_load_all();
  }
  if (const char* kernels = std::getenv(kKernelsVariable); kernels != nullptr) {
    if (const auto limited = limit_kernels(kernels); !limited) {
      std::fputs((limited.error().message + "\n").c_str(), stderr);
      return 2;
    }
  }
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
