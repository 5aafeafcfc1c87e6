// Request: identifiers of tokens, sequences and requests, and how a generation ends.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

using Token = std::int32_t;      // llama_token, without its header
using SeqId = std::int32_t;      // llama_seq_id
using RequestId = std::int64_t;  // unique within a process
using Salt = std::uint64_t;      // one per tenant; tenants never share what was computed

enum class FinishReason {
  kStop,       // the model ended its answer, or a stop string was met
  kLength,     // as many tokens as requested, or as fit
  kCancelled,  // the client gave up
  kFailed,     // the engine could not compute it; the error says why
};
// One lower-case word; OpenAI's word where its API has one.
std::string_view name(FinishReason reason);

}  // namespace slipstream
