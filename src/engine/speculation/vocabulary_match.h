// Whether two models have the same tokens, so that one can guess what the other will say.
//
// Threads: thread-safe. Errors: kUnsupported; the message says what differs first.
#pragma once

#include "base/result.h"

struct llama_vocab;

namespace slipstream {

[[nodiscard]] Result<void> check_same_vocabulary(const llama_vocab* model,
                                                 const llama_vocab* draft_model);

}  // namespace slipstream
