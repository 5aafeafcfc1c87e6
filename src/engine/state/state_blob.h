// The bytes of a saved sequence: libllama's state without the rows of compressed caches, those rows
// packed, and the centres of the caches (docs/formats/packed-state.md). Only the turbo device knows
// what packed rows and centres contain; here they are bytes.
//
// Threads: plain data. A StateBlob borrows the bytes it was parsed from.
// Errors:  parse(): kCorrupt. For any input, it reads nothing outside the bytes, and what it
//          accepts needs at most kPackedRatioMax times its own size of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace slipstream {

// Rows at `offset` of libllama's state that are packed instead.
struct StateGap {
  std::uint64_t offset;
  std::uint64_t n_rows;
  std::uint32_t row_bytes;
  std::uint32_t packed_row_bytes;

  [[nodiscard]] std::uint64_t n_bytes() const { return n_rows * row_bytes; }
  [[nodiscard]] std::uint64_t packed_bytes() const { return n_rows * packed_row_bytes; }
};

// 16 bits to 2; scales make the ratio smaller.
inline constexpr std::uint32_t kPackedRatioMax = 8;

class StateBlobWriter {
 public:
  // state_bytes: size of libllama's state, including rows.
  explicit StateBlobWriter(std::size_t state_bytes);

  // Where to write packed rows; valid until the next call. Null unless rows are added in the order
  // of the state.
  std::byte* add_rows(const StateGap& gap);
  // Null if these centres have been added already.
  std::byte* add_centres(int layer, int side, std::size_t n_bytes);
  // Adds the state outside the rows.
  [[nodiscard]] std::vector<std::byte> finish(std::span<const std::byte> state) &&;

 private:
  struct Centres {
    std::int32_t layer;
    std::int32_t side;
    std::vector<std::byte> bytes;
  };
  std::size_t state_bytes_;
  std::vector<std::byte> bytes_;  // space for the header, then packed rows
  std::vector<StateGap> gaps_;
  std::vector<Centres> centres_;
};

// A blob for a state without such rows. It ends with state_bytes zeroes; libllama can write the
// state there itself.
[[nodiscard]] std::vector<std::byte> plain_state_blob(std::size_t state_bytes);

// The rest of a blob, to be changed; empty if it is none.
[[nodiscard]] std::span<std::byte> state_rest(std::span<std::byte> blob);
// Takes bytes from the end of the rest, or adds zeroes there. REQUIRES: parse() accepts the blob, and
// no gap is behind what is taken.
void resize_state_rest(std::vector<std::byte>& blob, std::size_t n_bytes);

class StateBlob {
 public:
  [[nodiscard]] static Result<StateBlob> parse(std::span<const std::byte> bytes);

  [[nodiscard]] std::size_t state_bytes() const { return state_bytes_; }
  [[nodiscard]] std::size_t packed_bytes() const { return packed_.size(); }
  [[nodiscard]] std::vector<StateGap> gaps() const;
  // libllama's state outside the gaps; all of it if there are none.
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }
  // Copies rest() around the gaps. Bytes in gaps stay unchanged.
  void spread(std::span<std::byte> state) const;
  // Packed rows and centres; null if there are none for this place and of this size. Rows may be
  // requested in other pieces than they were saved in.
  [[nodiscard]] const std::byte* rows(const StateGap& wanted) const;
  [[nodiscard]] const std::byte* centres(int layer, int side, std::size_t n_bytes) const;

 private:
  struct Centres {
    std::int32_t layer;
    std::int32_t side;
    std::span<const std::byte> bytes;
  };
  struct PlacedGap {
    StateGap gap;
    std::size_t packed_start;
  };
  std::size_t state_bytes_ = 0;
  std::span<const std::byte> packed_;
  std::span<const std::byte> rest_;
  std::vector<PlacedGap> gaps_;  // by offset, without overlap
  std::vector<Centres> centres_;
};

}  // namespace slipstream
