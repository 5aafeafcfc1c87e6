// `slipstream bench MODEL`: measures the speed of KV schemes by depth and concurrency, against
// stock llama.cpp in the same run. The table goes to standard output, progress to standard error,
// and everything into a directory: runs.jsonl, speed.csv, report.md, report.html.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/draft_model.h"
#include "engine/model/rope_scaling.h"

namespace slipstream::bench {

struct Options {
  std::string model;
  std::vector<std::string> kv = {"f16", "q8_0", "q4_0", "turbo8v4", "turbo4", "turbo3"};
  std::string prompts = "off";  // "on": every scheme is also measured with our own products
  std::vector<std::string> depths = {"0", "1k", "8k"};
  std::vector<int> n_sequences = {1, 8};
  bool is_of_speculation = false;      // drafts are measured instead of schemes
  DraftWish draft;                     // a model that makes them, too
  double draft_acceptance = 0.7;       // how often it is to be right
  bool has_shared = false;             // several sequences also share their depth
  std::string computed_depth = "16k";  // deeper cells repeat it
  std::uint64_t kv_memory_bytes = 0;   // for codes of schemes that limit what is read; 0: all
  std::string kv_memory_directory;     // of the file that has the others
  RopeScaling rope;
  int n_repeats = 3;
  int n_threads = 0;  // 0: one per core
  int n_prompt = 512;
  int n_tokens = 32;
  std::string text;       // empty: built in
  std::string directory;  // empty: named after the model
};

// Returns the exit status: 0, or 1 if some or all cells could not be measured.
int run(const Options& options);

// Runs the process of one cell, with its task on standard input (bench/child_task.h).
int run_cell_process();

}  // namespace slipstream::bench
