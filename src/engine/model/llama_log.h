// What libllama and ggml say, in our log: their lines at debug, and the last complaint kept,
// because their functions return null without a reason.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace slipstream {

// From now on, for the whole process. May be called often.
void redirect_llama_log();

// The last warning or error of this thread since the last call; empty if there was none.
std::string take_llama_complaint();

// What failed, with that complaint behind it if there is one.
std::string with_llama_complaint(std::string_view what);

}  // namespace slipstream
