// Writes prefixes into a directory until it is killed. Usage: disk_tier_writer DIRECTORY SEED
#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/log.h"
#include "engine/prefixes/disk/disk_tier.h"
#include "engine/prefixes/disk/disk_tier_test_support.h"
#include "sizes.h"

int main(int argc, char** argv) {
  using namespace slipstream;
  if (argc != 3) return 2;
  log::set_level(log::Level::kError);
  const auto tier = DiskTier::open(argv[1], kCrashBytesMax, kFingerprint);
  if (!tier) {
    std::fprintf(stderr, "%s\n", tier.error().message.c_str());
    return 1;
  }
  std::mt19937_64 random(std::strtoull(argv[2], nullptr, 10));
  while (true) {
    const std::uint64_t number = random() % kCrashNumbers;
    (*tier)->write(0, sample_tokens(number), sample_state(number, crash_state_bytes(number)));
    if (random() % 4 == 0) (*tier)->flush();
  }
}
