#include "engine/speculation/vocabulary_match.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/sampling/test_model.h"

namespace slipstream {
namespace {

std::vector<std::string> texts_of(const gguf_context* file) {
  const std::int64_t key = gguf_find_key(file, "tokenizer.ggml.tokens");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < gguf_get_arr_n(file, key); ++i) {
    texts.emplace_back(gguf_get_arr_str(file, key, i));
  }
  return texts;
}

void set_texts(gguf_context* file, const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  gguf_set_arr_str(file, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
}

std::string complaint(const std::function<void(gguf_context*)>& change) {
  const llama_model_ptr changed = changed_needle_model(change);
  const Result<void> same = check_same_vocabulary(llama_model_get_vocab(needle_model()),
                                                  llama_model_get_vocab(changed.get()));
  if (same) return "";
  EXPECT_EQ(same.error().code, Code::kUnsupported);
  return same.error().message;
}

TEST(VocabularyMatch, AcceptsTheSameTokensInAnotherFile) {
  EXPECT_EQ(complaint([](gguf_context* file) {
              gguf_set_val_str(file, "general.name", "another model");
            }),
            "");
}

TEST(VocabularyMatch, SaysHowManyTokensThereAre) {
  const std::string said = complaint([](gguf_context* file) {
    std::vector<std::string> texts = texts_of(file);
    texts.emplace_back("<one more>");
    set_texts(file, texts);
    for (const char* key : {"tokenizer.ggml.token_type", "tokenizer.ggml.scores"}) {
      gguf_remove_key(file, key);  // they are as many as there were
    }
  });
  const int n_tokens = needle_vocabulary().n_tokens();
  EXPECT_TRUE(said.contains(std::to_string(n_tokens + 1) + " and not " + std::to_string(n_tokens)))
      << said;
}

TEST(VocabularyMatch, SaysWhichTokenHasAnotherText) {
  const std::string said = complaint([](gguf_context* file) {
    std::vector<std::string> texts = texts_of(file);
    texts[700] = "<another>";
    set_texts(file, texts);
  });
  EXPECT_TRUE(said.contains("token 700 is '<another>' and not '")) << said;
}

TEST(VocabularyMatch, SaysWhichSpecialTokenIsAnother) {
  const std::string said = complaint(
      [](gguf_context* file) { gguf_set_val_u32(file, "tokenizer.ggml.eos_token_id", 42); });
  EXPECT_TRUE(said.contains("the one that ends texts is 42 and not")) << said;
}

}  // namespace
}  // namespace slipstream
