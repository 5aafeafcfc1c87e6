// Flags that several commands share: how a model is loaded.
//
// Threads: call before the command line is parsed. Errors: none; CLI11 refuses wrong values.
#pragma once

#include <cstdint>
#include <string>

#include "cli/draft_model.h"
#include "cli/kv_choice.h"
#include "engine/speculation/speculation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace slipstream {

// Adds MODEL, in the form that find_model.h accepts.
CLI::Option* add_model_argument(CLI::App& command, std::string& model);
// Adds --yes, for install_missing().
void add_yes_flag(CLI::App& command, bool& is_sure);
void add_model_options(CLI::App& command, KvWish& kv, int& n_context, int& n_threads);
void add_kv_memory_options(CLI::App& command, std::uint64_t& n_bytes, std::string& directory);
void add_rope_options(CLI::App& command, RopeScaling& rope);
void add_weight_options(CLI::App& command, WeightWish& weights);
// Adds --draft-model, with llama-server's names for it, --draft-kv and --mtp.
void add_draft_options(CLI::App& command, DraftWish& draft);
// Adds these and --speculate, one of the words that speculates_of() knows. A draft model that is named
// is used, as is --mtp on, unless --speculate says how.
void add_speculation_options(CLI::App& command, std::string& speculate, DraftWish& draft);
[[nodiscard]] Speculates speculates_of(const std::string& word);
// Adds --mmproj, with llama-server's short name for it.
void add_projector_option(CLI::App& command, std::string& projector);
// Adds --rpc, a list that parse_rpc_hosts() reads.
void add_rpc_option(CLI::App& command, std::string& hosts);
void add_disk_options(CLI::App& command, std::string& kv_disk, std::uint64_t& kv_disk_bytes);

}  // namespace slipstream
