#include "engine/state/state_blob.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ranges>
#include <utility>

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "written as it lies in memory");

constexpr std::uint32_t kMagic = 0x51534c53;  // "SLSQ"
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t n_gaps;
  std::uint32_t n_centres;
  std::uint64_t state_bytes;  // with gaps
  std::uint64_t packed_bytes;
  std::uint64_t rest_bytes;  // of the state, without gaps
};
static_assert(sizeof(Header) == 40 && sizeof(StateGap) == 24, "no padding is saved");

struct CentresHeader {
  std::int32_t layer;
  std::int32_t side;
  std::uint64_t n_bytes;
};

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  bytes.append_range(std::as_bytes(std::span(&value, 1)));
}

// Takes values and bytes from the front; refuses what is not there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  [[nodiscard]] bool take(T& value) {
    std::span<const std::byte> bytes;
    if (!take_bytes(sizeof(value), bytes)) return false;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return true;
  }
  [[nodiscard]] bool take_bytes(std::uint64_t n_bytes, std::span<const std::byte>& bytes) {
    if (n_bytes > rest_.size()) return false;
    bytes = rest_.first(n_bytes);
    rest_ = rest_.subspan(n_bytes);
    return true;
  }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

std::unexpected<Error> corrupt(const char* what) {
  return fail(Code::kCorrupt, std::string("not a saved sequence: ") + what);
}

}  // namespace

StateBlobWriter::StateBlobWriter(std::size_t state_bytes)
    : state_bytes_(state_bytes), bytes_(sizeof(Header)) {}

std::byte* StateBlobWriter::add_rows(const StateGap& gap) {
  const std::uint64_t end = gaps_.empty() ? 0 : gaps_.back().offset + gaps_.back().n_bytes();
  if (gap.offset < end || gap.offset + gap.n_bytes() > state_bytes_) return nullptr;
  if (gaps_.empty()) {
    // Reserve for the whole state at this ratio, so that the largest part is not moved repeatedly.
    bytes_.reserve(sizeof(Header) + state_bytes_ / gap.row_bytes * gap.packed_row_bytes);
  }
  if (!gaps_.empty() && gap.offset == end && gap.row_bytes == gaps_.back().row_bytes &&
      gap.packed_row_bytes == gaps_.back().packed_row_bytes) {
    gaps_.back().n_rows += gap.n_rows;  // the next range of cells of the same cache
  } else {
    gaps_.push_back(gap);
  }
  const std::size_t start = bytes_.size();
  bytes_.resize(start + gap.packed_bytes());
  return bytes_.data() + start;
}

std::byte* StateBlobWriter::add_centres(int layer, int side, std::size_t n_bytes) {
  const auto is_there = [&](const Centres& centres) {
    return centres.layer == layer && centres.side == side;
  };
  if (std::ranges::any_of(centres_, is_there)) return nullptr;
  centres_.push_back({.layer = layer, .side = side, .bytes = std::vector<std::byte>(n_bytes)});
  return centres_.back().bytes.data();
}

std::vector<std::byte> StateBlobWriter::finish(std::span<const std::byte> state) && {
  const std::size_t packed_end = bytes_.size();
  std::size_t from = 0;
  for (const StateGap& gap : gaps_) {
    bytes_.append_range(state.subspan(from, gap.offset - from));
    from = gap.offset + gap.n_bytes();
  }
  bytes_.append_range(state.subspan(from));
  const Header header = {.magic = kMagic,
                         .version = kVersion,
                         .n_gaps = static_cast<std::uint32_t>(gaps_.size()),
                         .n_centres = static_cast<std::uint32_t>(centres_.size()),
                         .state_bytes = state_bytes_,
                         .packed_bytes = packed_end - sizeof(Header),
                         .rest_bytes = bytes_.size() - packed_end};
  std::memcpy(bytes_.data(), &header, sizeof(header));
  for (const StateGap& gap : gaps_) append(bytes_, gap);
  for (const Centres& centres : centres_) {
    append(bytes_,
           CentresHeader{
               .layer = centres.layer, .side = centres.side, .n_bytes = centres.bytes.size()});
    bytes_.append_range(centres.bytes);
  }
  return std::move(bytes_);
}

std::vector<std::byte> plain_state_blob(std::size_t state_bytes) {
  std::vector<std::byte> bytes(sizeof(Header) + state_bytes);
  const Header header = {.magic = kMagic,
                         .version = kVersion,
                         .n_gaps = 0,
                         .n_centres = 0,
                         .state_bytes = state_bytes,
                         .packed_bytes = 0,
                         .rest_bytes = state_bytes};
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

std::span<std::byte> state_rest(std::span<std::byte> blob) {
  if (!StateBlob::parse(blob)) return {};
  Header header{};
  std::memcpy(&header, blob.data(), sizeof(header));
  return blob.subspan(sizeof(Header) + header.packed_bytes, header.rest_bytes);
}

void resize_state_rest(std::vector<std::byte>& blob, std::size_t n_bytes) {
  Header header{};
  std::memcpy(&header, blob.data(), sizeof(header));
  const auto start =
      blob.begin() + static_cast<std::ptrdiff_t>(sizeof(Header) + header.packed_bytes);
  const auto end = start + static_cast<std::ptrdiff_t>(header.rest_bytes);
  if (n_bytes <= header.rest_bytes) {
    blob.erase(start + static_cast<std::ptrdiff_t>(n_bytes), end);
  } else {
    blob.insert(end, n_bytes - header.rest_bytes, std::byte{0});
  }
  header.state_bytes = header.state_bytes - header.rest_bytes + n_bytes;
  header.rest_bytes = n_bytes;
  std::memcpy(blob.data(), &header, sizeof(header));
}

Result<StateBlob> StateBlob::parse(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Header header{};
  if (!reader.take(header) || header.magic != kMagic) return corrupt("it begins otherwise");
  if (header.version != kVersion) return corrupt("another version");
  StateBlob blob;
  if (!reader.take_bytes(header.packed_bytes, blob.packed_) ||
      !reader.take_bytes(header.rest_bytes, blob.rest_)) {
    return corrupt("it is cut off");
  }
  std::uint64_t state_bytes = 0;  // up to the end of the last gap
  std::uint64_t rest_bytes = 0;   // of these, outside gaps
  std::uint64_t packed_bytes = 0;
  for (std::uint32_t i = 0; i < header.n_gaps; ++i) {
    StateGap gap{};
    if (!reader.take(gap)) return corrupt("gaps are missing");
    // In this order, no product or sum exceeds 64 bits: rows are at most packed_bytes, and
    // everything else is a small multiple of the blob's own size.
    if (gap.packed_row_bytes == 0 || gap.row_bytes == 0 ||
        (gap.row_bytes - 1) / kPackedRatioMax >= gap.packed_row_bytes || gap.n_rows == 0 ||
        gap.n_rows > (header.packed_bytes - packed_bytes) / gap.packed_row_bytes ||
        gap.offset < state_bytes || gap.offset - state_bytes > header.rest_bytes - rest_bytes) {
      return corrupt("a gap that cannot be");
    }
    blob.gaps_.push_back({.gap = gap, .packed_start = packed_bytes});
    rest_bytes += gap.offset - state_bytes;
    packed_bytes += gap.packed_bytes();
    state_bytes = gap.offset + gap.n_bytes();
  }
  if (packed_bytes != header.packed_bytes ||
      state_bytes + (header.rest_bytes - rest_bytes) != header.state_bytes) {
    return corrupt("its parts do not add up");
  }
  blob.state_bytes_ = header.state_bytes;
  for (std::uint32_t i = 0; i < header.n_centres; ++i) {
    CentresHeader centres{};
    std::span<const std::byte> content;
    if (!reader.take(centres) || !reader.take_bytes(centres.n_bytes, content)) {
      return corrupt("centres are missing");
    }
    blob.centres_.push_back({.layer = centres.layer, .side = centres.side, .bytes = content});
  }
  if (!reader.rest().empty()) return corrupt("it does not end where it should");
  return blob;
}

std::vector<StateGap> StateBlob::gaps() const {
  return std::views::transform(gaps_, &PlacedGap::gap) | std::ranges::to<std::vector>();
}

void StateBlob::spread(std::span<std::byte> state) const {
  std::span<const std::byte> from = rest_;
  std::size_t at = 0;
  for (const PlacedGap& placed : gaps_) {
    const std::size_t n_bytes = placed.gap.offset - at;
    std::ranges::copy(from.first(n_bytes), state.begin() + static_cast<std::ptrdiff_t>(at));
    from = from.subspan(n_bytes);
    at = placed.gap.offset + placed.gap.n_bytes();
  }
  std::ranges::copy(from, state.begin() + static_cast<std::ptrdiff_t>(at));
}

const std::byte* StateBlob::rows(const StateGap& wanted) const {
  const auto next = std::ranges::upper_bound(
      gaps_, wanted.offset, {}, [](const PlacedGap& placed) { return placed.gap.offset; });
  if (next == gaps_.begin()) return nullptr;
  const PlacedGap& found = *std::prev(next);
  if (found.gap.row_bytes != wanted.row_bytes ||
      found.gap.packed_row_bytes != wanted.packed_row_bytes) {
    return nullptr;
  }
  const std::uint64_t start = wanted.offset - found.gap.offset;
  const std::uint64_t row = start / wanted.row_bytes;
  if (start % wanted.row_bytes != 0 || row > found.gap.n_rows ||
      wanted.n_rows > found.gap.n_rows - row) {
    return nullptr;
  }
  return packed_.data() + found.packed_start + row * wanted.packed_row_bytes;
}

const std::byte* StateBlob::centres(int layer, int side, std::size_t n_bytes) const {
  const auto found = std::ranges::find_if(centres_, [&](const Centres& centres) {
    return centres.layer == layer && centres.side == side && centres.bytes.size() == n_bytes;
  });
  return found == centres_.end() ? nullptr : found->bytes.data();
}

}  // namespace slipstream
