// The needle model's vocabulary, loaded once for all tests of this program.
//
// Threads: thread-safe. Errors: a missing fixture aborts the test.
#pragma once

#include "engine/sampling/vocabulary.h"

namespace slipstream {

const llama_model* needle_model();  // without weights
const Vocabulary& needle_vocabulary();

}  // namespace slipstream
