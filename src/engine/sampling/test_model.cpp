#include "engine/sampling/test_model.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "base/format.h"

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

llama_model_ptr changed_needle_model(const std::function<void(gguf_context*)>& change) {
  // Tests run in parallel.
  const std::string path = format_text("{}changed_needle.{}.gguf", testing::TempDir(), ::getpid());
  const gguf_context_ptr source(
      gguf_init_from_file(NEEDLE_MODEL, {.no_alloc = true, .ctx = nullptr}));
  const gguf_context_ptr changed(gguf_init_empty());
  gguf_set_kv(changed.get(), source.get());
  change(changed.get());
  SLIP_CHECK(gguf_write_to_file(changed.get(), path.c_str(), true), "cannot write a fixture");
  (void)needle_model();  // silences the log
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
  std::filesystem::remove(path);
  SLIP_CHECK(model != nullptr, "cannot load a changed needle model");
  return model;
}

std::vector<Token> stock_tokens(const Vocabulary& vocabulary, std::string_view text,
                                bool add_special, bool parse_special) {
  std::vector<Token> tokens(text.size() + 8);
  const int n =
      llama_tokenize(vocabulary.get(), text.data(), static_cast<int>(text.size()), tokens.data(),
                     static_cast<int>(tokens.size()), add_special, parse_special);
  SLIP_CHECK(n >= 0, "libllama made more tokens than bytes");
  tokens.resize(static_cast<std::size_t>(n));
  return tokens;
}

}  // namespace slipstream
