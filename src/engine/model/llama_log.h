// Sends the log of libllama and ggml to ours, at level debug. Keeps the last complaint, because
// their functions return null without a reason.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace slipstream {

// Takes effect for the whole process. May be called more than once.
void redirect_llama_log();
// The same for libmtmd's.
void redirect_projector_log();

// The last warning or error of this thread since the last call; empty if there was none.
std::string take_llama_complaint();

// The first error of this thread since then, which is often the reason of those behind it.
std::string first_llama_error();

// `what` failed; appends that complaint if there is one.
std::string with_llama_complaint(std::string_view what);

}  // namespace slipstream
