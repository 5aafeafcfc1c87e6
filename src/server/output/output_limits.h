// OutputLimits: how much of what a model writes is held back.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct OutputLimits {
  // What a model writes (server/output). So much is held back while it may become a tool call: its
  // arguments before its name, or one parameter whose type must be seen whole. More is given to the
  // client as text.
  std::size_t call_held_bytes_max = std::size_t{1} << 20;
  // A tool's name and what surrounds it; the name of a parameter.
  std::size_t call_header_bytes_max = 512;
  // Deeper arguments are no call: a client's parser would recurse as deep.
  std::size_t call_nesting_max = 128;
  // White space before markup belongs to the markup, up to so much.
  std::size_t held_space_bytes_max = 256;
};

inline constexpr OutputLimits kOutputLimits{};

}  // namespace slipstream
