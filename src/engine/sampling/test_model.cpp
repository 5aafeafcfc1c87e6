#include "engine/sampling/test_model.h"

#include <llama-cpp.h>

#include "base/check.h"

namespace slipstream {

const llama_model* needle_model() {
  static const llama_model_ptr model = [] {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    return llama_model_ptr(llama_model_load_from_file(NEEDLE_MODEL, params));
  }();
  SLIP_CHECK(model != nullptr, "cannot load " NEEDLE_MODEL);
  return model.get();
}

const Vocabulary& needle_vocabulary() {
  static const Vocabulary vocabulary = *Vocabulary::create(needle_model());
  return vocabulary;
}

}  // namespace slipstream
