#include "engine/state/packed_state.h"

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/mapping.h"
#include "engine/model/llama_log.h"
#include "engine/model/turbo_plugin.h"
#include "engine/state/state_blob.h"

namespace slipstream {
namespace {

std::uint8_t* u8(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}
const std::uint8_t* u8(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// Describes rows by their place in libllama's state; none if they lie outside of it.
std::optional<StateGap> gap_at(std::span<const std::byte> state, const void* place,
                               std::size_t n_rows, std::size_t row_bytes,
                               std::size_t packed_row_bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(state.data());
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  if (at < start || at - start > state.size() || n_rows * row_bytes > state.size() - (at - start)) {
    return std::nullopt;
  }
  return StateGap{.offset = at - start,
                  .n_rows = n_rows,
                  .row_bytes = static_cast<std::uint32_t>(row_bytes),
                  .packed_row_bytes = static_cast<std::uint32_t>(packed_row_bytes)};
}

// The device calls these, and libllama calls the device: no exception may pass through them.
struct Saving {
  StateBlobWriter writer;
  std::span<const std::byte> state;
  bool is_out_of_memory = false;

  static void* place_centres(void* user, int layer, int side, std::size_t n_bytes) noexcept {
    auto& self = *static_cast<Saving*>(user);
    try {
      return self.writer.add_centres(layer, side, n_bytes);
    } catch (const std::bad_alloc&) {
      self.is_out_of_memory = true;
      return nullptr;
    }
  }
  static void* place_rows(void* user, const void* place, std::size_t n_rows, std::size_t row_bytes,
                          std::size_t packed_row_bytes) noexcept {
    auto& self = *static_cast<Saving*>(user);
    const auto gap = gap_at(self.state, place, n_rows, row_bytes, packed_row_bytes);
    if (!gap) return nullptr;
    try {
      return self.writer.add_rows(*gap);
    } catch (const std::bad_alloc&) {
      self.is_out_of_memory = true;
      return nullptr;
    }
  }
};

struct Restoring {
  const StateBlob& blob;
  std::span<const std::byte> state;
  std::uint64_t n_bytes_taken = 0;

  static const void* find_centres(void* user, int layer, int side, std::size_t n_bytes) noexcept {
    return static_cast<Restoring*>(user)->blob.centres(layer, side, n_bytes);
  }
  static const void* find_rows(void* user, const void* place, std::size_t n_rows,
                               std::size_t row_bytes, std::size_t packed_row_bytes) noexcept {
    auto& self = *static_cast<Restoring*>(user);
    const auto gap = gap_at(self.state, place, n_rows, row_bytes, packed_row_bytes);
    if (!gap) return nullptr;
    self.n_bytes_taken += gap->packed_bytes();
    return self.blob.rows(*gap);
  }
};

// Always ends the exchange; otherwise rows would stay packed for everyone on this thread.
class Exchange {
 public:
  explicit Exchange(bool (*end_function)()) : end_(end_function) {}
  ~Exchange() { (void)end(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  // Whether all succeeded. If nothing is packed, there is no function to ask.
  bool end() {
    const auto end_once = std::exchange(end_, nullptr);
    return end_once == nullptr || end_once();
  }

 private:
  bool (*end_)();
};

std::unexpected<Error> out_of_memory() {
  return fail(Code::kOutOfMemory, "no memory to save the sequence");
}

}  // namespace

PackedState::PackedState(bool packs) {
  if (!packs) return;
  auto* begin_packing = find_turbo_function<turbo::BeginPacking>();
  auto* begin_unpacking = find_turbo_function<turbo::BeginUnpacking>();
  auto* end = find_turbo_function<turbo::EndPackedRows>();
  if (begin_packing == nullptr || begin_unpacking == nullptr || end == nullptr) return;
  begin_packing_ = begin_packing;
  begin_unpacking_ = begin_unpacking;
  end_ = end;
}

Result<std::vector<std::byte>> PackedState::save(llama_context* context, SeqId seq) const try {
  (void)take_llama_complaint();
  const auto refused = [seq] {
    return fail(Code::kUnsupported,
                with_llama_complaint(format_text("cannot save sequence {}", seq)));
  };
  const std::size_t state_bytes = llama_state_seq_get_size(context, seq);
  if (state_bytes == 0) return refused();
  if (end_ == nullptr) {
    std::vector<std::byte> blob = plain_state_blob(state_bytes);
    const std::span<std::byte> plain = std::span(blob).last(state_bytes);
    if (llama_state_seq_get_data(context, u8(plain), plain.size(), seq) != plain.size()) {
      return refused();
    }
    return blob;
  }
  // Gaps are never touched, so only what libllama writes takes memory.
  Result<Mapping> memory = Mapping::anonymous(state_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  const std::span<std::byte> state = memory->bytes();
  Saving saving{.writer = StateBlobWriter(state_bytes), .state = state};
  Exchange exchange(end_);
  begin_packing_(&saving, Saving::place_centres, Saving::place_rows);
  const std::size_t n_written = llama_state_seq_get_data(context, u8(state), state.size(), seq);
  const bool is_whole = exchange.end();
  if (saving.is_out_of_memory) return out_of_memory();
  if (n_written != state_bytes || !is_whole) return refused();
  return std::move(saving.writer).finish(state);
} catch (const std::bad_alloc&) {
  return out_of_memory();
}

Result<void> PackedState::restore(llama_context* context, SeqId seq,
                                  std::span<const std::byte> bytes) const {
  (void)take_llama_complaint();
  const auto empty_and_fail = [&](std::unexpected<Error> error) {
    llama_memory_seq_rm(llama_get_memory(context), seq, -1, -1);
    return error;
  };
  const Result<StateBlob> blob = StateBlob::parse(bytes);
  if (!blob) return empty_and_fail(std::unexpected(blob.error()));
  // Without packed rows it is just libllama's state; a device then takes f16 rows.
  const bool is_packed = blob->packed_bytes() > 0;
  if (is_packed && end_ == nullptr) {
    return empty_and_fail(fail(Code::kUnsupported,
                               "the sequence was saved from a compressed KV cache, and this "
                               "process has no turbo device"));
  }
  std::span<const std::byte> state = blob->rest();
  Mapping memory;
  if (is_packed) {
    Result<Mapping> mapped = Mapping::anonymous(blob->state_bytes());
    if (!mapped) return empty_and_fail(std::unexpected(std::move(mapped.error())));
    memory = std::move(*mapped);
    blob->spread(memory.bytes());
    state = memory.bytes();
  }
  Restoring restoring{.blob = *blob, .state = state};
  Exchange exchange(is_packed ? end_ : nullptr);
  if (is_packed) begin_unpacking_(&restoring, Restoring::find_centres, Restoring::find_rows);
  const std::size_t n_read = llama_state_seq_set_data(context, u8(state), state.size(), seq);
  const bool is_whole = exchange.end();
  // Rows that were not asked for belong to a cache that is not compressed here: it got zeroes.
  if (n_read != state.size() || !is_whole || restoring.n_bytes_taken != blob->packed_bytes()) {
    return empty_and_fail(fail(
        Code::kUnsupported, with_llama_complaint(format_text("cannot restore sequence {}", seq))));
  }
  return {};
}

}  // namespace slipstream
