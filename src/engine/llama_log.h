// What libllama and ggml say, in our log: their lines at debug, and the last complaint kept,
// because their functions return null without a reason.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>

namespace slipstream {

// From now on, for the whole process. May be called often.
void redirect_llama_log();

// The last warning or error of this thread since the last call; empty if there was none.
std::string take_llama_complaint();

}  // namespace slipstream
