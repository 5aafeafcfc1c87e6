// The needle model's vocabulary, loaded once for all tests of this program.
//
// Threads: thread-safe. Errors: a missing fixture aborts the test.
#pragma once

#include <llama-cpp.h>

#include <functional>

#include "engine/text/vocabulary.h"

struct gguf_context;

namespace slipstream {

const llama_model* needle_model();  // without weights
const Vocabulary& needle_vocabulary();
// The same model with changed metadata.
llama_model_ptr changed_needle_model(const std::function<void(gguf_context*)>& change);
// The tokens that libllama itself makes of a text.
std::vector<Token> stock_tokens(const Vocabulary& vocabulary, std::string_view text,
                                bool add_special, bool parse_special);

}  // namespace slipstream
