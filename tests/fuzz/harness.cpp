#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

// Whoever recurses on what a client sends finds the end of this much sooner than of the 8 MB that
// threads of the server have; and with sanitizers a frame is several times as large.
constexpr std::size_t kStackBytes = std::size_t{FUZZ_STACK_KB} << 10;

// Of the processor, with sanitizers: a machine that is busy with other things changes nothing. Work
// that a budget bounds takes up to the first whatever the length; the rest has to be linear.
constexpr double kSecondsMax = 5;
constexpr double kSecondsMaxPerByte = 10e-6;

double seconds_used() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  // The kernel looks at it when the stack of this thread grows; others get theirs when they start.
  const rlimit stack{.rlim_cur = kStackBytes, .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_STACK, &stack) != 0) std::abort();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  const double before = seconds_used();
  fuzz_one(data, n_bytes);
  const double took = seconds_used() - before;
  const double most = kSecondsMax + kSecondsMaxPerByte * static_cast<double>(n_bytes);
  if (took > most) {
    std::fprintf(stderr, "%zu bytes took %.2f s, more than %.2f s\n", n_bytes, took, most);
    std::abort();
  }
  return 0;
}
