// Cell: one square of the speed matrix (KV scheme x depth x concurrency), the task that a process
// is given to measure it, and the figures it returns.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::bench {

// Behind the name of a stock scheme: without flash attention, as llama.cpp's own flag says it. It
// is stock's default, but without it stock may decode faster at depth.
inline constexpr std::string_view kNoFlashAttention = " -fa off";
[[nodiscard]] inline bool has_flash_attention(std::string_view kv) {
  return !kv.ends_with(kNoFlashAttention);
}
// What the cache is made of.
[[nodiscard]] inline std::string_view cache_scheme(std::string_view kv) {
  if (!has_flash_attention(kv)) kv.remove_suffix(kNoFlashAttention.size());
  return kv;
}

struct Cell {
  std::string kv;       // a scheme, or "f16 -fa off"
  int depth = 0;        // tokens of each sequence that are there before those that count
  int n_sequences = 1;  // that decode together
  auto operator<=>(const Cell&) const = default;
};

struct CellTask {
  Cell cell;
  std::filesystem::path model;
  std::filesystem::path plugin;       // for turbo... schemes
  std::filesystem::path key_profile;  // what was fitted to the model's keys; empty: nothing
  std::filesystem::path text;         // what all tokens are taken from
  std::filesystem::path states;       // where the filled depth is kept for the next cell
  int n_threads = 1;
  int n_prompt = 512;  // tokens of the prefill that counts, all sequences together
  int n_tokens = 64;   // that each sequence decodes
};

struct CellFigures {
  double prefill_tokens_per_s = 0;  // of n_prompt behind the depth
  double decode_tokens_per_s = 0;   // of all sequences together
  std::vector<double> step_ms;      // each step of the decode
  double fill_seconds = 0;          // from nothing to the depth, one sequence; 0: it was kept
  double cpu_share = 0;             // of n_threads, in the worse of prefill and decode
  std::uint64_t rss_bytes = 0;      // of the process at the end
  std::uint64_t kv_bytes = 0;       // of the cache; 0 where the forecast does not know the model
};

// Others had the machine, most of the time that counts: such figures are not the scheme's.
[[nodiscard]] constexpr bool was_starved(const CellFigures& figures) {
  constexpr double kShareMin = 0.5;
  return figures.cpu_share < kShareMin;
}

}  // namespace slipstream::bench
