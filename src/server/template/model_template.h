// chat_template_of(): the chat template that a model's file has.
//
// Threads: thread-safe. Errors: kUnsupported for a model without one, or with one that cannot be parsed.
#pragma once

#include "base/result.h"
#include "engine/text/vocabulary.h"
#include "server/template/chat_template.h"

struct llama_model;

namespace slipstream {

[[nodiscard]] Result<ChatTemplate> chat_template_of(const llama_model* model,
                                                    const Vocabulary& vocabulary);

}  // namespace slipstream
