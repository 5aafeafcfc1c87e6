// `slipstream serve`: OpenAI's API on this machine, until SIGINT or SIGTERM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/kv_choice.h"

namespace slipstream::serve {

struct Options {
  std::string model;                   // loaded at once, and stays
  std::string name;                    // that clients use for it; empty: the file's
  std::vector<std::string> models;     // NAME=PATH: loaded when they are asked for
  std::vector<std::string> pinned;     // names of those that are loaded at once, and stay
  bool uses_hub = false;               // clients may list, load, search and pull models
  std::uint64_t memory_bytes_max = 0;  // of all models together; 0: what is available at the start
  int idle_seconds_max = 0;            // after which a model is unloaded; 0: when room is needed
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  KvWish kv;
  ExpertWish experts;
  int n_context = 0;  // 0: the default
  int n_parallel = 8;
  int n_queue = 256;
  int n_http_threads = 0;          // that requests are worked on; 0: the default
  int n_embedding_tokens_max = 0;  // 0: no embeddings
  int n_threads = 0;
  std::string kv_disk;
  std::uint64_t kv_disk_bytes = std::uint64_t{8} << 30;
  std::string responses_dir;  // empty: the last ones are kept in memory
  std::uint64_t responses_bytes = std::uint64_t{256} << 20;
  std::vector<std::string> api_keys;
  std::string keys_file;             // more of them, with limits; empty: none
  std::vector<std::string> hosts;    // names of this server, for Host
  std::vector<std::string> origins;  // of pages that may use it
  int drain_seconds_max = 30;
  bool supervises = false;  // this process starts another one that serves, and again if it crashes
};

// The exit status. `argv` is that of main().
int serve(const Options& options, char** argv);

}  // namespace slipstream::serve
