// TextLimits: how long a client's texts may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct TextLimits {
  // A longer prompt is refused before it is tokenized (vocabulary.h): some of libllama's tokenizers
  // take a second per megabyte, and a context of a million tokens is about 4 MB of text.
  std::size_t text_bytes_max = std::size_t{16} << 20;
  // A request with more or longer stop strings is refused (text_stream.h): each costs a comparison
  // per byte, and a client's text may lag behind by its length.
  std::size_t stops_max = 16;
  std::size_t stop_bytes_max = std::size_t{1} << 10;
};

inline constexpr TextLimits kTextLimits{};

}  // namespace slipstream
