// `slipstream serve`: OpenAI's API on this machine, until SIGINT or SIGTERM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/draft_model.h"
#include "cli/kv_choice.h"

namespace slipstream::serve {

struct Options {
  std::string model;                   // loaded at the start, and never unloaded
  std::string name;                    // the name for clients; empty: the file's
  std::vector<std::string> models;     // NAME=PATH: loaded on demand
  std::vector<std::string> pinned;     // names of models that are loaded at the start, and stay
  bool is_sure = false;                // a model that is not installed is pulled without asking
  bool uses_hub = false;               // clients may list, load, search and pull models
  std::uint64_t memory_bytes_max = 0;  // for all models; 0: what is available at the start
  int idle_seconds_max = 0;            // a model is unloaded after it; 0: when room is needed
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  KvWish kv;
  WeightWish weights;
  RopeScaling rope;
  std::string speculate = "off";  // speculates_of()
  DraftWish draft;                // for MODEL
  std::string projector;          // for images in chats with MODEL; empty: none
  int n_context = 0;              // 0: the default
  int n_parallel = 8;
  int n_queue = 256;
  int n_http_threads = 0;          // threads that process requests; 0: the default
  int n_embedding_tokens_max = 0;  // 0: no embeddings
  int n_threads = 0;
  std::string kv_disk;
  std::uint64_t kv_disk_bytes = std::uint64_t{8} << 30;
  std::string rpc;            // hosts with layers of the model; empty: none
  std::string responses_dir;  // empty: the last ones are kept in memory
  std::uint64_t responses_bytes = std::uint64_t{256} << 20;
  std::string context_overflow = "refuse";  // or "rescue": for chats longer than the context
  std::int64_t n_recalled_max = -1;         // tokens; -1: the default
  bool offers_mcp = false;                  // to clients: the folders of the index
  std::string index;                        // empty: the user's
  std::vector<std::string> mcp_folders;     // only these; empty: all of the index
  bool mcp_clients_may_add = false;         // folders of their choice
  std::string retrieve;               // a folder, or "all": chats are searched for; empty: not
  int n_retrieved_tokens_max = 1500;  // for one message
  std::string attachments_dir;        // empty: clients cannot attach files to chats
  std::uint64_t attachments_bytes = std::uint64_t{1} << 30;
  int attachments_days = 30;  // without use, then a chat's are removed
  std::vector<std::string> api_keys;
  std::string keys_file;             // more keys, with limits; empty: none
  std::vector<std::string> hosts;    // names of this server, for the Host header
  std::vector<std::string> origins;  // of web pages that may use it
  int drain_seconds_max = 30;
  // Start a child process that serves, again after a crash. With hosts in `rpc` always.
  bool supervises = false;
};

// Returns the exit status. `argv` is that of main().
int serve(const Options& options, char** argv);

}  // namespace slipstream::serve
