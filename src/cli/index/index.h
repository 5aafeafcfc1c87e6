// `slipstream index ACTION`: the folders that can be searched (docs/search.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/indexing/indexer.h"
#include "retrieval/store/projects.h"

namespace CLI {
class App;
}

namespace slipstream::index {

struct Options {
  std::string action;
  std::string path;  // of the index; empty: the user's
  std::vector<std::string> folders;
  int n_threads = 0;  // that read files; 0: one per core
  bool is_sure = false;
  // The model of embed, whose vectors are computed; empty: the index's own.
  [[nodiscard]] std::string model() const { return folders.empty() ? "" : folders.front(); }
  bool is_off = false;  // embed: remove all vectors
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* index_;
};

// --index, for every command that has one.
void add_index_option(CLI::App& command, std::string& path);
// The index that was named, or the user's own.
[[nodiscard]] std::string index_path(const std::string& named);

// Each returns the exit status.
int add(const Options& options);
int list(const Options& options);
int status(const Options& options);
int watch(const Options& options);
int rm(const Options& options);
int embed(const Options& options);

// For people.
[[nodiscard]] std::string format_update(const Project& project, const UpdateSummary& update,
                                        const ProjectCounts& counts);
[[nodiscard]] std::string format_status(const Project& project, const ProjectCounts& counts,
                                        std::int64_t now_ms);

}  // namespace slipstream::index
