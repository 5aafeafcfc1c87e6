// Depths on the command line: tokens of context, such as 512, 8k or 1.5k.
//
// Threads: pure functions. Errors: parse_depth(): kInvalidArgument.
#pragma once

#include <string_view>

#include "base/result.h"

namespace CLI {
class Option;
}

namespace slipstream {

[[nodiscard]] Result<int> parse_depth(std::string_view text);

// Makes an option of numbers take depths, of `min` tokens or more.
void take_depths(CLI::Option& option, int min);

}  // namespace slipstream
