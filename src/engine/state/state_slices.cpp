#include "engine/state/state_slices.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace slipstream {
namespace {

struct SliceHead {
  std::uint64_t n_tokens;
  std::uint64_t n_bytes;
};
static_assert(sizeof(SliceHead) == 16);

}  // namespace

void append_slice(std::vector<std::byte>& bytes, int n_tokens, std::span<const std::byte> state) {
  SLIP_CHECK(n_tokens > 0, "a slice of nothing");
  const SliceHead head{.n_tokens = static_cast<std::uint64_t>(n_tokens), .n_bytes = state.size()};
  const auto head_bytes = std::as_bytes(std::span(&head, 1));
  bytes.insert(bytes.end(), head_bytes.begin(), head_bytes.end());
  bytes.insert(bytes.end(), state.begin(), state.end());
}

Result<std::vector<StateSlice>> parse_slices(std::span<const std::byte> bytes, int n_tokens) {
  std::vector<StateSlice> slices;
  int first = 0;
  while (!bytes.empty()) {
    SliceHead head{};
    if (bytes.size() < sizeof(head)) return fail(Code::kCorrupt, "a slice without its head");
    std::memcpy(&head, bytes.data(), sizeof(head));
    bytes = bytes.subspan(sizeof(head));
    const auto n_left = static_cast<std::uint64_t>(n_tokens - first);
    if (head.n_tokens == 0 || head.n_tokens > n_left || head.n_bytes > bytes.size()) {
      return fail(Code::kCorrupt, "a slice that is longer than the whole");
    }
    const int end = first + static_cast<int>(head.n_tokens);
    slices.push_back({.first = first, .end = end, .state = bytes.first(head.n_bytes)});
    bytes = bytes.subspan(head.n_bytes);
    first = end;
  }
  if (first != n_tokens) return fail(Code::kCorrupt, "slices that end too early");
  return slices;
}

}  // namespace slipstream
