// What the writer that is killed and the test that looks at its files agree on.
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream {

inline constexpr std::uint64_t kCrashNumbers = 60;
// About a third of all fits, so that files are deleted all the time.
inline constexpr std::uint64_t kCrashBytesMax = std::uint64_t{12} << 20;

// From a few bytes to more than one block.
inline std::size_t crash_state_bytes(std::uint64_t number) { return 10 + number * 20'000; }

}  // namespace slipstream
