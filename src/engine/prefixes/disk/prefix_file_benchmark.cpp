// Measures how fast states are written to files and read back, and prints it in bytes of state.
// This is not a test. "sync" is what the disk tier does; without it, files stay in the page cache,
// so that compression is measured.
//
//   prefix_file_benchmark [--benchmark_filter=write/noise] [DIRECTORY]
//
// States: zeroes; noise (similar to compressed codes); f16, normally distributed (stock caches).
#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/format.h"
#include "engine/prefixes/disk/disk_tier_test_support.h"
#include "engine/prefixes/disk/prefix_directory.h"
#include "engine/prefixes/disk/prefix_file.h"

namespace slipstream {
namespace {

constexpr std::size_t kStateBytes = std::size_t{256} << 20;

std::vector<std::byte> f16_state() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::byte> state(kStateBytes);
  for (std::size_t i = 0; i < state.size(); i += 2) {
    const auto half = static_cast<_Float16>(normal(random));
    std::memcpy(state.data() + i, &half, 2);
  }
  return state;
}

std::vector<std::byte> state_of(const std::string& kind) {
  if (kind == "zeroes") return std::vector<std::byte>(kStateBytes);
  if (kind == "noise") return sample_state(1, kStateBytes);
  return f16_state();
}

PrefixHead head() {
  return {.fingerprint = kFingerprint,
          .tokens = std::vector<Token>(4096, 1),
          .state_bytes = kStateBytes};
}

Result<void> always(std::uint64_t /*n_written*/, std::uint64_t /*n_more*/) { return {}; }

std::uint64_t write_once(const PrefixDirectory& directory, const std::vector<std::byte>& state,
                         bool sync) {
  directory.discard(1);
  const Result<UniqueFd> fd = directory.create(1);
  SLIP_CHECK(fd.has_value(), "cannot create a file");
  const Result<std::uint64_t> n_bytes = write_prefix_file(fd->get(), head(), state, always);
  SLIP_CHECK(n_bytes.has_value(), "cannot write");
  if (sync) SLIP_CHECK(directory.publish(1, *fd).has_value(), "cannot publish");
  return *n_bytes;
}

void write(benchmark::State& run, const PrefixDirectory& directory, const std::string& kind,
           bool sync) {
  const std::vector<std::byte> state = state_of(kind);
  std::uint64_t n_bytes = 0;
  for (auto _ : run) n_bytes = write_once(directory, state, sync);
  run.SetBytesProcessed(run.iterations() * static_cast<std::int64_t>(kStateBytes));
  run.counters["file_size"] = static_cast<double>(n_bytes) / static_cast<double>(kStateBytes);
}

// cold: the file is not in the page cache.
void read(benchmark::State& run, const PrefixDirectory& directory, const std::string& kind,
          bool cold) {
  std::vector<std::byte> state = state_of(kind);
  write_once(directory, state, true);
  for (auto _ : run) {
    Result<UniqueFd> fd = directory.open_file(1);
    SLIP_CHECK(fd.has_value(), "cannot open");
    if (cold) SLIP_CHECK(::posix_fadvise(fd->get(), 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
    const Result<PrefixFile> file = PrefixFile::open(std::move(*fd));
    SLIP_CHECK(file.has_value() && file->read_state(state).has_value(), "cannot read");
  }
  run.SetBytesProcessed(run.iterations() * static_cast<std::int64_t>(kStateBytes));
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  using namespace slipstream;
  benchmark::Initialize(&argc, argv);
  const TemporaryDirectory temporary;
  const Result<PrefixDirectory> directory =
      PrefixDirectory::open(argc > 1 ? argv[1] : temporary.path());
  SLIP_CHECK(directory.has_value(), directory.error().message);
  for (const std::string kind : {"zeroes", "noise", "f16"}) {
    for (const bool slow : {false, true}) {
      benchmark::RegisterBenchmark(
          format_text("write/{}{}", kind, slow ? "/sync" : ""),
          [=, &directory](benchmark::State& run) { write(run, *directory, kind, slow); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(
          format_text("read/{}{}", kind, slow ? "/cold" : ""),
          [=, &directory](benchmark::State& run) { read(run, *directory, kind, slow); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  directory->discard(1);
}
