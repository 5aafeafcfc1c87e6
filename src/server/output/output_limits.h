// OutputLimits: how much of a model's output is held back.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct OutputLimits {
  // These limits apply to a model's output (server/output). This much is held back while it may
  // become a tool call: arguments before the name, or one parameter that must be complete before
  // its type is known. Beyond the limit, it is sent to the client as text.
  std::size_t call_held_bytes_max = std::size_t{1} << 20;
  // The limit for a tool's name with the text around it, and for the name of a parameter.
  std::size_t call_header_bytes_max = 512;
  // Arguments nested more deeply are not a call: a client's parser would recurse as deep.
  std::size_t call_nesting_max = 128;
  // White space before markup belongs to the markup, up to this many bytes.
  std::size_t held_space_bytes_max = 256;
};

inline constexpr OutputLimits kOutputLimits{};

}  // namespace slipstream
