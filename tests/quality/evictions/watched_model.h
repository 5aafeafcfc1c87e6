// WatchedModel: a model with stock's f16 cache and plain attention, whose attention is recorded while
// it reads a text, and can be kept from some of the text's cells while it answers.
//
// libllama removes whole cells only, from all heads of all layers. So that a head may have cells of
// its own, as in most published policies, nothing is removed here: the products of a query with the
// keys of hidden cells become minus infinity before the softmax. That gives the same weights as
// removal (watched_model_test.cpp).
//
// Threads: thread-compatible.
// Errors:  create(): those of GgufModel and libllama; kUnsupported for a model whose graph has none of
//          the tensors that are watched: it takes one whose keys and queries are normalised (Qwen3).
//          read(), answer(): kUnsupported with libllama's status, kOutOfMemory for too many tokens.
#pragma once

#include <llama-cpp.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention_record.h"
#include "base/result.h"
#include "engine/text/vocabulary.h"
#include "policy.h"

namespace slipstream::evictions {

class WatchedModel {
 public:
  [[nodiscard]] static Result<WatchedModel> create(const std::string& path, std::size_t n_cells,
                                                   int n_threads);

  // Reads a text into an empty cache, and records what its attention does.
  [[nodiscard]] Result<AttentionRecord> read_recording(std::span<const Token> text);
  [[nodiscard]] Result<void> read(std::span<const Token> text);
  // Goes on greedily behind the text and `question`, until the model ends its answer, and forgets
  // both. `kept`: the cells of the text that it sees; null: all.
  [[nodiscard]] Result<std::string> answer(std::span<const Token> question, const Kept* kept,
                                           int n_tokens_max);
  // Reads on behind the text, and returns the logits of its last token.
  [[nodiscard]] Result<std::vector<float>> logits_after(std::span<const Token> more,
                                                        const Kept* kept);

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] const llama_model* model() const { return model_.get(); }
  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] std::size_t n_trained() const {
    return static_cast<std::size_t>(llama_model_n_ctx_train(model_.get()));
  }

 private:
  // What is watched, for ggml's callback.
  struct Watch {
    AttentionShape shape = {};
    AttentionRecord* record = nullptr;  // null: nothing is recorded
    const Kept* kept = nullptr;         // null: nothing is hidden
    std::size_t n_done = 0;             // tokens of the text before this step
  };
  static bool on_tensor(ggml_tensor* tensor, bool is_question, void* watch);

  WatchedModel(llama_model_ptr model, llama_context_ptr context, Vocabulary vocabulary,
               std::unique_ptr<Watch> watch)
      : watch_(std::move(watch)),
        model_(std::move(model)),
        context_(std::move(context)),
        vocabulary_(std::move(vocabulary)) {}

  // At most a step of tokens. Of the last one there are logits.
  [[nodiscard]] Result<void> decode(std::span<const Token> tokens);

  std::unique_ptr<Watch> watch_;  // the context points to it
  llama_model_ptr model_;
  llama_context_ptr context_;
  Vocabulary vocabulary_;
  std::size_t n_text_ = 0;
};

}  // namespace slipstream::evictions
