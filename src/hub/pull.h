// pull(): downloads a model from the hub into the cache, complete and verified, or not at all.
//
// It asks the hub for the files and chooses among them (gguf_choice.h). For each file that the
// cache lacks, it waits for any other process that already downloads it, fetches what is
// missing, checks the hash, and only then gives the file its name. After a kill at any moment
// the next pull resumes.
//
// Threads: call from one thread; callbacks come on it.
// Errors:  those of http_verdict.h; kNotFound for a quant that does not exist; kIo with advice
//          if the disk is too small; kCorrupt for a hash that is not the hub's, or a listing
//          without one; kCancelled.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_name.h"
#include "hub/range_download.h"
#include "hub/settings.h"

namespace slipstream::hub {

struct PullProgress {
  enum class Stage { kDownload, kVerify };
  Stage stage;
  std::string_view file;
  std::uint64_t done_bytes;  // of all files of the model; for kVerify, of this file
  std::uint64_t n_bytes;
};

struct PullOptions {
  ModelName model;
  DownloadOptions download;
  std::function<void(const PullProgress&)> on_progress;
  // A sentence for the user: what was chosen, what the pull waits for.
  std::function<void(const std::string&)> on_remark;
};

struct Pulled {
  std::string name;                          // org/repo:quant
  std::vector<std::filesystem::path> files;  // in the snapshot, in the order of the parts
  std::uint64_t n_bytes = 0;
  std::uint64_t n_fetched_bytes = 0;  // 0: everything was there
};

// What pull() would install, as the hub says: its name with the quant, and the size of its files.
struct Offer {
  std::string name;
  std::uint64_t n_bytes = 0;
};
[[nodiscard]] Result<Offer> look_up(const Settings& settings, const ModelName& model);

[[nodiscard]] Result<Pulled> pull(const Settings& settings, const PullOptions& options);

}  // namespace slipstream::hub
