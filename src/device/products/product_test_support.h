// Test support for products: weights of any type, made of random numbers, and threads.
#pragma once

#include <ggml.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <thread>
#include <vector>

namespace slipstream::turbo {

// Types that a product of many columns is measured and tested with.
inline constexpr ggml_type kProductTypes[] = {
    GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0,    GGML_TYPE_Q4_K,
    GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS, GGML_TYPE_IQ2_XXS, GGML_TYPE_MXFP4};

inline std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> gauss;
  std::vector<float> floats(n);
  for (float& number : floats) number = gauss(random);
  return floats;
}

// Rows of n_inner random weights.
// REQUIRES: `rows` has n_rows rows of the type.
inline void fill_weights(ggml_type type, std::int64_t n_rows, std::int64_t n_inner, unsigned seed,
                         std::span<std::byte> rows) {
  const std::vector<float> floats = random_floats(static_cast<std::size_t>(n_rows * n_inner), seed);
  const std::vector<float> importance(static_cast<std::size_t>(n_inner), 1.0F);
  ggml_quantize_chunk(type, floats.data(), rows.data(), 0, n_rows, n_inner, importance.data());
}

// Packs and multiplies as ggml's threads do.
void multiply_on_threads(auto& task, int n_threads) {
  std::barrier packed_all(n_threads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < n_threads; ++i) {
    threads.emplace_back([&, i] {
      task.pack_columns(i, n_threads);
      packed_all.arrive_and_wait();
      task.multiply(n_threads);
    });
  }
}

}  // namespace slipstream::turbo
