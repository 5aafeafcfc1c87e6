#include "bench/speed/kept_depth.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>

#include "base/format.h"
#include "bench/speed/saved_state.h"

namespace slipstream::bench {

// Writes under another name first, so that a killed process leaves no partial state.
Result<void> KeptDepth::keep() const {
  const Result<std::vector<std::byte>> state = states_.save(context_, 0);
  if (!state) return std::unexpected(state.error());
  const std::filesystem::path partial = path_.string() + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file.write(reinterpret_cast<const char*>(state->data()), std::ssize(*state));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(partial, path_, error);
  if (!file || error) {
    return fail(Code::kIo, format_text("cannot keep a state of {} bytes in {}: is the disk full?",
                                       state->size(), path_.string()));
  }
  return {};
}

std::vector<std::byte> KeptDepth::read() const {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::vector<std::byte> state(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(state.data()), std::ssize(state));
  if (!file) return {};
  set_streams(state, static_cast<std::uint32_t>(n_streams_));
  return state;
}

bool KeptDepth::restore() const {
  const std::vector<std::byte> state = read();
  if (state.empty()) return false;
  llama_memory_clear(llama_get_memory(context_), false);
  return states_.restore(context_, 0, state).has_value();
}

// libllama replaces the cells of the sequence that it restores, so each copy comes by way of another
// sequence.
Result<void> KeptDepth::repeat(int n_kept, int n_tokens, SeqId spare,
                               const std::function<void(int)>& on_progress) const {
  if (n_kept >= n_tokens) return {};
  llama_memory_t memory = llama_get_memory(context_);
  std::vector<std::byte> state = read();
  for (int start = n_kept; start < n_tokens; start += n_kept) {
    const int end = std::min(start + n_kept, n_tokens);
    if (!move_cells(state, start - n_kept, start) || !states_.restore(context_, spare, state) ||
        llama_memory_seq_pos_min(memory, spare) != start ||
        !llama_memory_seq_rm(memory, spare, end, -1)) {
      return fail(Code::kUnsupported,
                  format_text("the state of {} tokens cannot be repeated for this model: "
                              "compute all with --computed-depth {}",
                              n_kept, n_tokens));
    }
    llama_memory_seq_cp(memory, spare, 0, -1, -1);
    llama_memory_seq_rm(memory, spare, -1, -1);
    on_progress(end);
  }
  return {};
}

}  // namespace slipstream::bench
