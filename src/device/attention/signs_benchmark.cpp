// Measures how fast the signs of keys are read to estimate scores, compared with reading as many bytes
// from end to end, in the faster of two ways.
//
//   signs_benchmark [--benchmark_filter=g2/p8]
//
// signs/gG/pP/tT: one token with G query heads to a KV head, P of 16 planes of signs (head size 128; a
// second pass reads 16, a first pass 8), over 64 KV heads of 128K tokens, on T threads. Signs and reads
// are measured in turns, in time of the processor, so that what else runs on the machine counts for
// little; "of_read" is the median of the shares of the turns.
#include <benchmark/benchmark.h>

#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "base/format.h"
#include "device/attention/benchmark_support.h"
#include "device/attention/sign_kernels.h"
#include "device/kv_buffer/key_signs.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kHeads = 64;
constexpr std::int64_t kCells = 131'072;
constexpr int kHeadDim = 128;
constexpr int kTurns = 15;

const KeySigns& random_signs() {
  static const KeySigns kSigns = [] {
    KeySigns signs =
        KeySigns::create(
            {.head_dim = kHeadDim, .n_heads = kHeads, .n_cells = kCells, .n_streams = 1})
            .value();
    std::mt19937 random(1);
    std::normal_distribution<float> gauss;
    std::vector<float> pool(kHeadDim + 4096);
    for (float& value : pool) value = gauss(random);
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t row = 0; row < kCells; ++row) {
        signs.write(row, head, std::span<const float>(pool).subspan(random() % 4096, kHeadDim));
      }
    }
    return signs;
  }();
  return kSigns;
}

// The queries of a thread, and what it finds.
struct Scanner {
  Scanner(int group, int n_planes)
      : tables(static_cast<std::size_t>(group) * sign_table_bytes(kHeadDim)),
        gains(static_cast<std::size_t>(group), 1),
        best(static_cast<std::size_t>(group * n_chunks(kCells))),
        dots(static_cast<std::size_t>(group) * kChunkTokens),
        chunks(static_cast<std::size_t>(n_chunks(kCells))) {
    std::mt19937 random(2);
    std::normal_distribution<float> gauss;
    for (int q = 0; q < group; ++q) {
      std::vector<float> query(kHeadDim);
      for (float& value : query) value = gauss(random);
      (void)make_sign_tables(
          query, 5, tables.data() + static_cast<std::size_t>(q) * sign_table_bytes(kHeadDim));
    }
    const int step = n_sign_planes(kHeadDim) / n_planes;
    for (int plane = 0; plane < n_planes; ++plane) {
      planes.push_back(static_cast<std::uint16_t>(plane * step));
    }
    std::ranges::iota(chunks, 0);
  }

  void scan(std::int64_t head) {
    const KeySigns& signs = random_signs();
    scan_signs({.signs = signs.signs(0, head, 0),
                .plane_bytes = signs.plane_bytes(),
                .planes = planes,
                .scales = signs.scales(0, head, 0),
                .chunks = chunks,
                .tables = tables.data(),
                .row_tables = sign_table_bytes(kHeadDim),
                .n_rows = static_cast<int>(gains.size()),
                .gains = gains.data(),
                .best = best.data(),
                .best_stride = chunks.size(),
                .dots = dots.data()});
    benchmark::DoNotOptimize(best.data());
  }

  std::vector<std::int8_t> tables;
  std::vector<float> gains;
  std::vector<float> best;
  std::vector<std::int32_t> dots;
  std::vector<int> chunks;
  std::vector<std::uint16_t> planes;
};

void scan_all(benchmark::State& state, int group, int n_planes, int n_threads) {
  std::vector<Scanner> scanners(static_cast<std::size_t>(n_threads), Scanner(group, n_planes));
  // The planes that are read, and the scales.
  const ReadMemory memory(static_cast<std::size_t>(kHeads * kCells * (n_planes + 1)));
  std::vector<double> signs_speeds;
  std::vector<double> read_speeds;
  std::vector<double> shares;
  const auto n_bytes = static_cast<double>(memory.n_bytes());
  for (auto _ : state) {
    const double before = processor_seconds();
    memory.read(n_threads);
    const double between = processor_seconds();
    memory.read_with_prefetch(n_threads);
    const double middle = processor_seconds();
    on_threads(n_threads, [&](int thread) {
      for (std::int64_t head = thread; head < kHeads; head += n_threads) {
        scanners[static_cast<std::size_t>(thread)].scan(head);
      }
    });
    const double read = std::min(between - before, middle - between) / n_threads;
    const double once = (processor_seconds() - middle) / n_threads;
    state.SetIterationTime(once);
    read_speeds.push_back(n_bytes / read / 1e9);
    signs_speeds.push_back(n_bytes / once / 1e9);
    shares.push_back(read / once);
  }
  state.counters["GB/s"] = median(signs_speeds);
  state.counters["read_GB/s"] = median(read_speeds);
  state.counters["of_read"] = median(shares);
}

void register_all() {
  for (const int group : {1, 2, 4, 8}) {
    for (const int n_planes : {16, 8}) {
      for (const int n_threads : {1, 2}) {
        benchmark::RegisterBenchmark(
            format_text("signs/g{}/p{}/t{}", group, n_planes, n_threads),
            [=](benchmark::State& state) { scan_all(state, group, n_planes, n_threads); })
            ->UseManualTime()
            ->Iterations(kTurns)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo

int main(int argc, char** argv) {
  return slipstream::turbo::run_benchmarks(argc, argv, slipstream::turbo::register_all);
}
