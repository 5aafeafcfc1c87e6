// pull(): a model of the hub becomes files of the cache, whole and verified, or nothing.
//
// Asks the hub what there is, chooses the files (gguf_choice.h), and for each one that the cache
// lacks: waits for whoever downloads it already, fetches what is missing, compares its hash, and
// only then gives it its name. After a kill at any moment the next pull resumes.
//
// Threads: call from one thread; callbacks come on it.
// Errors:  as of http_verdict.h; kNotFound for a quant that is not there; kIo with advice where the
//          disk does not suffice; kCorrupt for a hash that is not the hub's, or a listing without
//          one; kCancelled.
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
  std::uint64_t done_bytes;  // of all files of the model together; of kVerify: of this file
  std::uint64_t n_bytes;
};

struct PullOptions {
  ModelName model;
  DownloadOptions download;
  std::function<void(const PullProgress&)> on_progress;
  // A sentence for the user: what was chosen, whom we wait for.
  std::function<void(const std::string&)> on_remark;
};

struct Pulled {
  std::string name;                          // org/repo:quant
  std::vector<std::filesystem::path> files;  // in the snapshot; of several parts the first first
  std::uint64_t n_bytes = 0;
  std::uint64_t n_fetched_bytes = 0;  // 0: all was there
};

[[nodiscard]] Result<Pulled> pull(const Settings& settings, const PullOptions& options);

}  // namespace slipstream::hub
