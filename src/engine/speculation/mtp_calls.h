// MtpCalls: what libllama has for layers that predict a token further (multi-token prediction) and
// declares in no header. Everything else that they need is in llama.h.
//
// The functions have C++ names, so a library in which their parameters differ does not have them under
// these. What they do could still change: they are used with versions only that the tests have passed
// with.
//
// Threads: thread-safe. Errors: kUnsupported, with one sentence.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

struct llama_context;

namespace slipstream {

struct MtpCalls {
  // Whether a context keeps the states behind its last layer; is_masked: only those of outputs.
  void (*keep_states)(llama_context* context, bool keeps, bool is_masked);
  // The state of a token of the last batch; null if there is none.
  float* (*state)(llama_context* context, std::int32_t batch_idx);
};

[[nodiscard]] bool is_tested_for_mtp(std::string_view llama_version);
[[nodiscard]] Result<MtpCalls> find_mtp_calls();

}  // namespace slipstream
