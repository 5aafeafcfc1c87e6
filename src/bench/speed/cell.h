// Cell: one square of the speed matrix (KV scheme x depth x concurrency), the task for the process
// that measures it, and the figures that it returns.
//
// Threads: plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/rope_scaling.h"

namespace slipstream::bench {

// These suffixes of a scheme's name are written like llama.cpp's flags and ours. Flash attention and
// weights repacked for the processor are stock's defaults, but without them stock may be faster.
inline constexpr std::string_view kNoFlashAttention = " -fa off";
inline constexpr std::string_view kNoRepack = " --no-repack";
inline constexpr std::string_view kOwnProducts = " --prompts on";
[[nodiscard]] inline bool has_flash_attention(std::string_view kv) {
  return !kv.contains(kNoFlashAttention);
}
[[nodiscard]] inline bool is_repacked(std::string_view kv) { return !kv.contains(kNoRepack); }
[[nodiscard]] inline bool has_products(std::string_view kv) { return kv.ends_with(kOwnProducts); }
// The scheme of the cache, without a suffix.
[[nodiscard]] inline std::string_view cache_scheme(std::string_view kv) {
  return kv.substr(0, kv.find(' '));
}
// The settings of stock's f16 that are measured. The default is the first.
inline constexpr std::string_view kStockSettings[] = {"f16", "f16 --no-repack", "f16 -fa off",
                                                      "f16 -fa off --no-repack"};
// Whether it is the same cache of stock, in any of stock's settings.
[[nodiscard]] inline bool is_setting_of(std::string_view kv, std::string_view stock) {
  return cache_scheme(kv) == cache_scheme(stock) && !has_products(kv);
}

struct Cell {
  std::string kv;             // a scheme, or "f16 -fa off", "turbo4 --prompts on"
  int depth = 0;              // tokens of each sequence before those that are measured
  int n_sequences = 1;        // decode together
  bool shares_depth = false;  // all sequences share the cells of the depth: one prefix
  auto operator<=>(const Cell&) const = default;
};

struct CellTask {
  Cell cell;
  std::filesystem::path model;
  std::filesystem::path plugin;       // for turbo... schemes and own products
  std::filesystem::path key_profile;  // fitted to the model's keys; empty: nothing
  std::filesystem::path text;         // the source of all tokens
  std::filesystem::path states;       // where the filled depth is kept for the next cell
  // For schemes that limit what is read: memory for their codes (ModelOptions); 0: all is in memory.
  std::string kv_memory = {};
  std::uint64_t kv_memory_bytes = 0;
  RopeScaling rope = {};
  int n_threads = 1;
  // A deeper cell is filled by repeating the state of this many tokens (n_computed()).
  int n_computed_max = 16'384;
  int n_prompt = 512;  // tokens of the measured prefill, all sequences together
  int n_tokens = 64;   // decoded by each sequence
};

// Tokens of the depth that are computed. The others repeat them: what a step costs depends on how many
// tokens are in the cache, not on which. Sequences with caches of their own compute all.
[[nodiscard]] inline int n_computed(const Cell& cell, int n_computed_max) {
  const bool is_one_cache = cell.n_sequences == 1 || cell.shares_depth;
  return is_one_cache ? std::min(cell.depth, n_computed_max) : cell.depth;
}

struct CellFigures {
  double prefill_tokens_per_s = 0;  // of n_prompt tokens after the depth
  double decode_tokens_per_s = 0;   // all sequences together
  std::vector<double> step_ms;      // each step of the decode
  double fill_seconds = 0;          // to compute the depth in one sequence; 0: it was restored
  double cpu_share = 0;             // of n_threads, in the worse of prefill and decode
  std::uint64_t rss_bytes = 0;      // of the process at the end
  std::uint64_t kv_bytes = 0;       // of the cache; 0 if the forecast does not know the model
};

// Other processes used the machine most of the time, so the figures do not show the scheme's speed.
[[nodiscard]] constexpr bool was_starved(const CellFigures& figures) {
  constexpr double kShareMin = 0.5;
  return figures.cpu_share < kShareMin;
}

}  // namespace slipstream::bench
