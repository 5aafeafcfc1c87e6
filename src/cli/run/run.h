// `slipstream run MODEL -p PROMPT`: continues one prompt on standard output, for a first use
// without a server. Progress and a line of timings go to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/draft_model.h"
#include "cli/kv_choice.h"

namespace slipstream::run {

struct Options {
  std::string model;
  bool is_sure = false;  // a model that is not installed is pulled without asking
  std::string prompt;
  std::string prompt_file;  // instead of prompt; "-": standard input
  KvWish kv;
  WeightWish weights;
  RopeScaling rope;
  std::string speculate = "off";  // speculates_of()
  DraftWish draft;
  int n_context = 0;  // 0: the default
  int n_tokens_max = 256;
  float temperature = 0.8F;
  std::optional<std::uint32_t> seed;
  int n_threads = 0;
  std::string kv_disk;  // where prompts are kept for later runs; empty: nowhere
  std::uint64_t kv_disk_bytes = std::uint64_t{8} << 30;
  std::string rpc;  // hosts with layers of the model; empty: none
};

// Returns the exit status.
int run(const Options& options);

}  // namespace slipstream::run
