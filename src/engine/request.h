// Request: what a client wants generated, and how a generation ends.
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
using RequestId = std::int64_t;  // never used twice in a process
using Salt = std::uint64_t;      // of a tenant: what is computed for one is never shown to another

enum class FinishReason {
  kStop,       // the model ended its answer, or a stop string was met
  kLength,     // as many tokens as were asked for, or as fit
  kCancelled,  // the client gave up
  kFailed,     // the engine could not compute it; the error says why
};
// One lower-case word, as OpenAI's API has it where it has one.
std::string_view name(FinishReason reason);

}  // namespace slipstream
