// Cell: one square of the speed matrix (KV scheme x depth x concurrency), the task for the process
// that measures it, and the figures that it returns.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::bench {

// These suffixes of a scheme's name are written like the flags. Flash attention is stock's default,
// but without it stock may decode faster at depth.
inline constexpr std::string_view kNoFlashAttention = " -fa off";
inline constexpr std::string_view kOwnProducts = " --prompts on";
[[nodiscard]] inline bool has_flash_attention(std::string_view kv) {
  return !kv.ends_with(kNoFlashAttention);
}
[[nodiscard]] inline bool has_products(std::string_view kv) { return kv.ends_with(kOwnProducts); }
// The scheme of the cache, without a suffix.
[[nodiscard]] inline std::string_view cache_scheme(std::string_view kv) {
  return kv.substr(0, kv.find(' '));
}
// Whether it is the same cache of stock, in any of stock's settings.
[[nodiscard]] inline bool is_setting_of(std::string_view kv, std::string_view stock) {
  return cache_scheme(kv) == cache_scheme(stock) && !has_products(kv);
}

struct Cell {
  std::string kv;       // a scheme, or "f16 -fa off", "turbo4 --prompts on"
  int depth = 0;        // tokens of each sequence before those that are measured
  int n_sequences = 1;  // decode together
  auto operator<=>(const Cell&) const = default;
};

struct CellTask {
  Cell cell;
  std::filesystem::path model;
  std::filesystem::path plugin;       // for turbo... schemes and own products
  std::filesystem::path key_profile;  // fitted to the model's keys; empty: nothing
  std::filesystem::path text;         // the source of all tokens
  std::filesystem::path states;       // where the filled depth is kept for the next cell
  int n_threads = 1;
  int n_prompt = 512;  // tokens of the measured prefill, all sequences together
  int n_tokens = 64;   // decoded by each sequence
};

struct CellFigures {
  double prefill_tokens_per_s = 0;  // of n_prompt tokens after the depth
  double decode_tokens_per_s = 0;   // all sequences together
  std::vector<double> step_ms;      // each step of the decode
  double fill_seconds = 0;          // to fill the depth in one sequence; 0: it was restored
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
