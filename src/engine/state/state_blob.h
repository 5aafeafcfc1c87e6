// The bytes of a saved sequence: libllama's state, in which the rows of compressed caches are left
// out, those rows packed, and the centres of the caches (docs/formats/packed-state.md). What a
// packed row and centres are is the turbo device's business; here they are bytes.
//
// Threads: plain data. A StateBlob borrows the bytes it was parsed from.
// Errors:  parse(): kCorrupt. Whatever bytes it is given, nothing outside them is read, and what it
//          accepts asks for no more than kPackedRatioMax times its own size of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace slipstream {

// Rows that libllama's state has at `offset` and that are packed instead.
struct StateGap {
  std::uint64_t offset;
  std::uint64_t n_rows;
  std::uint32_t row_bytes;
  std::uint32_t packed_row_bytes;

  [[nodiscard]] std::uint64_t n_bytes() const { return n_rows * row_bytes; }
  [[nodiscard]] std::uint64_t packed_bytes() const { return n_rows * packed_row_bytes; }
};

// 2 bits for 16, and then the scales.
inline constexpr std::uint32_t kPackedRatioMax = 8;

class StateBlobWriter {
 public:
  // state_bytes: of libllama's state, rows included.
  explicit StateBlobWriter(std::size_t state_bytes);

  // Where to put packed rows; valid until the next call. Null unless rows come in the order in
  // which the state has them.
  std::byte* add_rows(const StateGap& gap);
  // Null if they are there already.
  std::byte* add_centres(int layer, int side, std::size_t n_bytes);
  // Adds what the state has outside the rows.
  [[nodiscard]] std::vector<std::byte> finish(std::span<const std::byte> state) &&;

 private:
  struct Centres {
    std::int32_t layer;
    std::int32_t side;
    std::vector<std::byte> bytes;
  };
  std::size_t state_bytes_;
  std::vector<std::byte> bytes_;  // room for the header, then packed rows
  std::vector<StateGap> gaps_;
  std::vector<Centres> centres_;
};

// The same for a state without such rows: what is returned ends with state_bytes zeroes, which
// libllama can write itself.
[[nodiscard]] std::vector<std::byte> plain_state_blob(std::size_t state_bytes);

class StateBlob {
 public:
  [[nodiscard]] static Result<StateBlob> parse(std::span<const std::byte> bytes);

  [[nodiscard]] std::size_t state_bytes() const { return state_bytes_; }
  [[nodiscard]] std::size_t packed_bytes() const { return packed_.size(); }
  [[nodiscard]] std::vector<StateGap> gaps() const;
  // libllama's state outside the gaps: all of it if there are none.
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }
  // Puts rest() around the gaps. What lies in a gap stays as it is.
  void spread(std::span<std::byte> state) const;
  // Packed rows and centres, or null if there are none for this place and of this size. Rows may be
  // asked for in other pieces than they were saved in.
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
  std::vector<PlacedGap> gaps_;  // by offset, none overlaps another
  std::vector<Centres> centres_;
};

}  // namespace slipstream
