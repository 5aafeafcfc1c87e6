#include "bench/speed/saved_state.h"

#include <cstring>

#include "engine/state/state_blob.h"

namespace slipstream::bench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kStreamsAt = 2 * kWord;
constexpr std::size_t kCellsAt = 3 * kWord;
constexpr std::size_t kFirstCellAt = 4 * kWord;
// The limit of libllama.
constexpr std::uint32_t kStreamsMax = 256;

std::uint32_t word_at(std::span<const std::byte> rest, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, rest.data() + at, kWord);
  return word;
}

void put_word(std::span<std::byte> rest, std::size_t at, std::uint32_t word) {
  std::memcpy(rest.data() + at, &word, kWord);
}

// The bytes from one cell to the next; 0 if cells do not count up from `first`. libllama's versions
// differ in what follows a position.
std::size_t cell_stride(std::span<const std::byte> rest, std::uint32_t n_cells,
                        std::uint32_t first) {
  for (std::size_t stride = 2 * kWord; stride <= 6 * kWord; stride += kWord) {
    if (kFirstCellAt + n_cells * stride > rest.size()) return 0;
    std::uint32_t n_right = 0;
    while (n_right < n_cells && word_at(rest, kFirstCellAt + n_right * stride) == first + n_right) {
      ++n_right;
    }
    if (n_right == n_cells) return stride;
  }
  return 0;
}

}  // namespace

void set_streams(std::vector<std::byte>& state, std::uint32_t n_streams) {
  const std::span<std::byte> rest = state_rest(state);
  if (rest.size() < kStreamsAt + kWord) return;
  const std::uint32_t n_before = word_at(rest, kStreamsAt);
  if (n_before == 0 || n_before > kStreamsMax) return;
  const std::size_t other_streams_bytes = (n_before - 1) * kWord;
  if (rest.size() < kStreamsAt + kWord + other_streams_bytes) return;
  put_word(rest, kStreamsAt, n_streams);
  resize_state_rest(state, rest.size() - other_streams_bytes + (n_streams - 1) * kWord);
}

bool move_cells(std::span<std::byte> state, int from, int to) {
  const std::span<std::byte> rest = state_rest(state);
  if (rest.size() < kFirstCellAt) return false;
  const std::uint32_t n_cells = word_at(rest, kCellsAt);
  // One cell does not tell the stride.
  if (n_cells < 2 || n_cells > rest.size()) return false;
  const std::size_t stride = cell_stride(rest, n_cells, static_cast<std::uint32_t>(from));
  if (stride == 0) return false;
  for (std::uint32_t i = 0; i < n_cells; ++i) {
    put_word(rest, kFirstCellAt + i * stride, static_cast<std::uint32_t>(to) + i);
  }
  return true;
}

}  // namespace slipstream::bench
