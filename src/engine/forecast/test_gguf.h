// For tests: makes small GGUF files, in a folder that is deleted when the test ends.
//
//   GgufMaker maker("llama");
//   maker.set("llama.block_count", 2).matrix("blk.0.attn_k.weight", 64, 32);
//   const std::filesystem::path path = maker.write(folder.path() / "model.gguf");
#pragma once

#include <ggml-cpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace slipstream {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "slipstream-gguf-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class GgufMaker {
 public:
  explicit GgufMaker(const std::string& architecture) : header_(gguf_init_empty()) {
    if (!architecture.empty()) set("general.architecture", architecture);
  }

  GgufMaker& set(const std::string& key, std::int64_t value) {
    gguf_set_val_i64(header_.get(), key.c_str(), value);
    return *this;
  }
  GgufMaker& set(const std::string& key, const std::string& value) {
    gguf_set_val_str(header_.get(), key.c_str(), value.c_str());
    return *this;
  }
  GgufMaker& set(const std::string& key, const std::vector<std::int32_t>& values) {
    gguf_set_arr_data(header_.get(), key.c_str(), GGUF_TYPE_INT32, values.data(), values.size());
    return *this;
  }
  GgufMaker& matrix(const std::string& name, std::int64_t columns, std::int64_t rows,
                    std::int64_t n = 1, ggml_type type = GGML_TYPE_F32) {
    const std::size_t n_bytes = ggml_row_size(type, columns) * static_cast<std::size_t>(rows * n);
    ggml_context_ptr context(ggml_init({.mem_size = n_bytes + 2 * ggml_tensor_overhead() + 64,
                                        .mem_buffer = nullptr,
                                        .no_alloc = false}));
    ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), type, columns, rows, n);
    ggml_set_name(tensor, name.c_str());
    std::memset(tensor->data, 0, n_bytes);
    gguf_add_tensor(header_.get(), tensor);
    contexts_.push_back(std::move(context));
    return *this;
  }
  // Its bytes are a hole in the file. For write_sparse().
  GgufMaker& sparse_matrix(const std::string& name, std::int64_t columns, std::int64_t rows,
                           ggml_type type) {
    ggml_context_ptr context(ggml_init(
        {.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
    ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), type, columns, rows);
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(header_.get(), tensor);
    sparse_bytes_ += ggml_nbytes(tensor);
    contexts_.push_back(std::move(context));
    return *this;
  }
  // Adds embeddings, and layers with attention and a feed-forward block.
  GgufMaker& decoder(const std::string& architecture, std::int64_t n_layers, std::int64_t n_embd,
                     std::int64_t n_heads, std::int64_t n_kv_heads, std::int64_t head_dim) {
    set(architecture + ".block_count", n_layers).set(architecture + ".embedding_length", n_embd);
    set(architecture + ".context_length", 4096);
    set(architecture + ".attention.head_count", n_heads);
    set(architecture + ".attention.head_count_kv", n_kv_heads);
    set(architecture + ".attention.key_length", head_dim);
    set(architecture + ".attention.value_length", head_dim);
    matrix("token_embd.weight", n_embd, 96).matrix("output.weight", n_embd, 96);
    for (std::int64_t layer = 0; layer < n_layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      matrix(block + "attn_q.weight", n_embd, n_heads * head_dim);
      matrix(block + "attn_k.weight", n_embd, n_kv_heads * head_dim);
      matrix(block + "attn_v.weight", n_embd, n_kv_heads * head_dim);
      matrix(block + "ffn_up.weight", n_embd, 4 * n_embd);
      matrix(block + "ffn_gate.weight", n_embd, 4 * n_embd);
      matrix(block + "ffn_down.weight", 4 * n_embd, n_embd);
    }
    return *this;
  }

  [[nodiscard]] std::filesystem::path write(const std::filesystem::path& path) const {
    EXPECT_TRUE(gguf_write_to_file(header_.get(), path.c_str(), /*only_meta=*/false));
    return path;
  }
  [[nodiscard]] std::filesystem::path write_sparse(const std::filesystem::path& path) const {
    EXPECT_TRUE(gguf_write_to_file(header_.get(), path.c_str(), /*only_meta=*/true));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) + sparse_bytes_);
    return path;
  }

 private:
  gguf_context_ptr header_;
  std::size_t sparse_bytes_ = 0;
  std::vector<ggml_context_ptr> contexts_;  // own the tensors' bytes
};

}  // namespace slipstream
