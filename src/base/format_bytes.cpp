#include "base/format_bytes.h"

#include "base/format.h"

namespace slipstream {

std::string format_bytes(std::uint64_t n_bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const auto in = [&](std::uint64_t unit) {
    return static_cast<double>(n_bytes) / static_cast<double>(unit);
  };
  if (n_bytes < kGiB) return format_text("{:.0f} MiB", in(kMiB));
  return format_text("{:.1f} GiB", in(kGiB));
}

}  // namespace slipstream
