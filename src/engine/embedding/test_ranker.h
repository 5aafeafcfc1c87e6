// For tests: writes a tiny model of the kind that ranks (BERT with a head that gives one number).
// Its weights are random: what it thinks of texts means nothing, but depends on every token.
#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace slipstream {

class TestRanker {
 public:
  static constexpr int kTokensMax = 64;

  static void write(const std::filesystem::path& path) {
    TestRanker ranker;
    ranker.set_header();
    ranker.add_tensors();
    gguf_write_to_file(ranker.file_.get(), path.c_str(), /*only_meta=*/false);
  }

 private:
  static constexpr int kWidth = 32;
  static constexpr int kInner = 64;

  void set_header() {
    gguf_context* file = file_.get();
    gguf_set_val_str(file, "general.architecture", "bert");
    gguf_set_val_u32(file, "bert.block_count", 1);
    gguf_set_val_u32(file, "bert.context_length", kTokensMax);
    gguf_set_val_u32(file, "bert.embedding_length", kWidth);
    gguf_set_val_u32(file, "bert.feed_forward_length", kInner);
    gguf_set_val_u32(file, "bert.attention.head_count", 2);
    gguf_set_val_f32(file, "bert.attention.layer_norm_epsilon", 1e-12F);
    gguf_set_val_bool(file, "bert.attention.causal", false);
    gguf_set_val_u32(file, "bert.pooling_type", 4);  // LLAMA_POOLING_TYPE_RANK
    gguf_set_val_u32(file, "tokenizer.ggml.token_type_count", 2);
    gguf_set_val_str(file, "tokenizer.ggml.model", "bert");
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    for (const char* word : {"heron", "river", "bread", "oven", "the", "in"}) {
      tokens.push_back(std::string("\u2581") + word);
    }
    n_tokens_ = static_cast<int>(tokens.size());
    std::vector<const char*> texts;
    std::vector<std::int32_t> types;
    for (const std::string& token : tokens) {
      texts.push_back(token.c_str());
      types.push_back(token.starts_with('[') ? 3 : 1);
    }
    gguf_set_arr_str(file, "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
    gguf_set_val_u32(file, "tokenizer.ggml.padding_token_id", 0);
    gguf_set_val_u32(file, "tokenizer.ggml.unknown_token_id", 1);
    gguf_set_val_u32(file, "tokenizer.ggml.bos_token_id", 2);
    gguf_set_val_u32(file, "tokenizer.ggml.cls_token_id", 2);
    gguf_set_val_u32(file, "tokenizer.ggml.eos_token_id", 3);
    gguf_set_val_u32(file, "tokenizer.ggml.seperator_token_id", 3);  // as llama.cpp spells it
  }

  void add_tensors() {
    add("token_embd", kWidth, n_tokens_);
    add("position_embd", kWidth, kTokensMax);
    add("token_types", kWidth, 2);
    add_norm("token_embd_norm");
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      add_with_bias(std::string("blk.0.") + name, kWidth, kWidth);
    }
    add_norm("blk.0.attn_output_norm");
    add_with_bias("blk.0.ffn_up", kWidth, kInner);
    add_with_bias("blk.0.ffn_down", kInner, kWidth);
    add_norm("blk.0.layer_output_norm");
    add_with_bias("cls", kWidth, kWidth);
    add_with_bias("cls.output", kWidth, 1);
  }
  void add_with_bias(const std::string& name, int n_columns, int n_rows) {
    add(name, n_columns, n_rows);
    add(name, n_rows, 0, ".bias");
  }
  void add_norm(const std::string& name) {
    add(name, kWidth, 0, ".weight", 1);
    add(name, kWidth, 0, ".bias");
  }
  // n_rows: 0 for a vector.
  void add(const std::string& name, int n_columns, int n_rows, const char* kind = ".weight",
           float mean = 0) {
    const auto n =
        static_cast<std::size_t>(n_columns) * static_cast<std::size_t>(n_rows > 0 ? n_rows : 1);
    ggml_context_ptr context(
        ggml_init({.mem_size = n * sizeof(float) + 2 * ggml_tensor_overhead() + 64,
                   .mem_buffer = nullptr,
                   .no_alloc = false}));
    ggml_tensor* tensor = n_rows > 0
                              ? ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, n_columns, n_rows)
                              : ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, n_columns);
    ggml_set_name(tensor, (name + kind).c_str());
    std::normal_distribution<float> around(mean, 0.4F);
    auto* values = static_cast<float*>(tensor->data);
    for (std::size_t i = 0; i < n; ++i) values[i] = around(random_);
    gguf_add_tensor(file_.get(), tensor);
    contexts_.push_back(std::move(context));
  }

  gguf_context_ptr file_{gguf_init_empty()};
  int n_tokens_ = 0;
  std::mt19937 random_{7};                  // the same model every time
  std::vector<ggml_context_ptr> contexts_;  // own the tensors' bytes
};

}  // namespace slipstream
