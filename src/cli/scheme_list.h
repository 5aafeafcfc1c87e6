// Lists of KV schemes on the command line. A scheme may contain commas: "q4_0,turbo4,0-1=turbo8"
// names two.
//
// Threads: pure function. Errors: none.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace slipstream {

// parts: the list, divided at its commas. A part with "=" belongs to the scheme before it.
[[nodiscard]] std::vector<std::string> join_schemes(std::span<const std::string> parts);

}  // namespace slipstream
