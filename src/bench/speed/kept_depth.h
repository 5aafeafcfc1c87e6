// KeptDepth: the depth of a cache, computed once in sequence 0 and kept in a file as the cache holds it
// (engine/state/packed_state.h), for other processes and for caches that are deeper.
//
// Threads: for the thread that owns the context.
// Errors:  keep(): those of PackedState::save(); kIo. repeat(): kUnsupported for a cache that cannot
//          be filled so.
#pragma once

#include <llama.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/state/packed_state.h"

namespace slipstream::bench {

class KeptDepth {
 public:
  // n_streams: those of the context's cache (saved_state.h). REQUIRES: the model is loaded.
  KeptDepth(llama_context* context, std::filesystem::path path, int n_streams)
      : context_(context), path_(std::move(path)), n_streams_(n_streams) {}

  // Keeps sequence 0.
  [[nodiscard]] Result<void> keep() const;
  // Sequence 0 becomes the one that was kept, and nothing else is in the cache. False: none was kept,
  // or it does not fit, and sequence 0 is empty.
  [[nodiscard]] bool restore() const;
  // Sequence 0 is the one that was kept, of n_kept tokens: copies of it follow, until it has n_tokens.
  // spare: a sequence that is not used. on_progress: tokens so far.
  [[nodiscard]] Result<void> repeat(int n_kept, int n_tokens, SeqId spare,
                                    const std::function<void(int)>& on_progress) const;

 private:
  [[nodiscard]] std::vector<std::byte> read() const;  // empty: none was kept

  llama_context* context_;
  std::filesystem::path path_;
  int n_streams_;
  PackedState states_;
};

}  // namespace slipstream::bench
