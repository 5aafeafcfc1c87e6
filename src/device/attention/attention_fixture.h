// Attention: the fixture for the tests of attention. It makes a cache, writes random rows into it,
// runs the op on it, and computes the same by the textbook formula in double precision. The TEST_Ps
// are in attention_test.cpp. The cases are there and in attention_{fitted,precise,choice}_test.cpp.
//
// Threads: one owner.
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "contract/scheme.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {

struct AttentionCase {
  const char* name;
  const char* scheme;
  std::int64_t head_dim = 64;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t n_queries = 1;
  std::int64_t n_streams = 1;
  float max_bias = 0;
  float softcap = 0;
  bool sinks = false;
  bool causal = true;
  int n_threads = 1;
  std::int64_t n_cells = 80;
  std::int64_t first_stream = 0;
  // The last cells hold the queries' own tokens and are written after keep_precise(). The cells
  // before them are written like an earlier prompt if keeps_prompt, otherwise like a restored
  // state. Each stream is 70 cells shorter than the one before.
  bool own_cells = false;
  bool keeps_prompt = true;
  bool is_fitted = false;  // keys are coded in a fitted basis
  // For each head of a query one token, somewhere, has almost all of its weight.
  bool planted = false;

  [[nodiscard]] std::int64_t n_used() const { return n_cells - 8; }  // ends inside a tile
  [[nodiscard]] std::int64_t own_cell(std::int64_t stream, std::int64_t query) const {
    return n_used() - n_queries + query - (own_cells ? 70 * stream : 0);
  }
};

inline void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }
inline std::string attention_case_name(const testing::TestParamInfo<AttentionCase>& test) {
  return test.param.name;
}

class Attention : public testing::TestWithParam<AttentionCase> {
 protected:
  // The cache's numbers after rounding, row after row. The op and the textbook compute with these.
  struct Stored {
    std::vector<float> coded;
    std::vector<float> precise;  // empty if there are no 8-bit copies
  };

  explicit Attention(const AttentionCase& its_case = GetParam());

  void write_cache(ggml_tensor* cache);
  void run();

  [[nodiscard]] Stored stored(ggml_tensor* tensor) const;
  // The textbook's output for one head of one query. codes_only: no 8-bit copies are read.
  [[nodiscard]] std::vector<double> expected(std::int64_t stream, std::int64_t query,
                                             std::int64_t head, const Stored& keys,
                                             const Stored& values, bool codes_only) const;
  // Allows for what is rounded besides the cache: the query, to steps of its peak (about 3), which
  // moves a score by `score_deviation`; and the weights, to steps of the chunk's largest.
  [[nodiscard]] double tolerance() const;

  AttentionCase case_;
  KvBufferType type_;
  ggml_tensor* keys_ = nullptr;
  ggml_tensor* values_ = nullptr;
  ggml_tensor* query_ = nullptr;
  ggml_tensor* op_ = nullptr;

 private:
  [[nodiscard]] ggml_tensor* make_cache(const char* name);
  [[nodiscard]] ggml_tensor* view(ggml_tensor* cache);
  void make_mask();
  void make_op();
  void fill(ggml_tensor* tensor);
  void plant();
  void write_kept(ggml_tensor* cache, const std::vector<std::int64_t>& row_idx);

  [[nodiscard]] Bits scheme_bits() const;
  // The queries' own rows, or the rows before them, stream after stream.
  [[nodiscard]] std::vector<std::int64_t> rows_of(bool own) const;
  [[nodiscard]] std::int64_t row_of(std::int64_t stream, std::int64_t cell) const;
  // Whether the query reads the 8-bit copy of the cell: it does for its own chunk, the chunk before
  // and the first chunk, if both sides have a copy.
  [[nodiscard]] bool reads_precisely(std::int64_t stream, std::int64_t query,
                                     std::int64_t cell) const;
  [[nodiscard]] double slope(std::int64_t head) const;

  std::mt19937 random_{23};
  ggml_context_ptr cache_context_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* mask_ = nullptr;
  ggml_tensor* sinks_ = nullptr;
  ggml_tensor* own_cells_ = nullptr;
};

}  // namespace slipstream::turbo
