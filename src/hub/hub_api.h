// HubApi: requests to the hub that are answered with JSON: what a repository holds, and which
// repositories there are.
//
// Answers are not trusted: listing.h and search_results.h check them. A request that fails
// temporarily is repeated.
//
// Threads: thread-compatible.
// Errors:  those of http_verdict.h; kCorrupt for an answer that is not JSON; kCancelled;
//          kInvalidArgument if HF_HUB_OFFLINE forbids requests.
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/http_get.h"
#include "hub/http_verdict.h"
#include "hub/listing.h"
#include "hub/model_name.h"
#include "hub/search_results.h"
#include "hub/settings.h"

namespace slipstream::hub {

class HubApi {
 public:
  HubApi(const Settings& settings, int n_retries, std::stop_token stop);

  [[nodiscard]] Result<RepoListing> list(const ModelName& model);
  // Repositories with models in GGUF, the most downloaded first.
  [[nodiscard]] Result<std::vector<SearchResult>> search(std::string_view text, int n_max);

 private:
  [[nodiscard]] Result<std::string> get(const std::string& path, const Subject& subject);
  void pause(std::chrono::milliseconds time) const;

  const Settings& settings_;
  const int n_retries_;
  const std::stop_token stop_;
  std::atomic<bool> is_stopped_ = false;
  const std::stop_callback<std::function<void()>> on_stop_;
  HttpConnection connection_;
};

// The page of a model and whether there is a token, for messages.
[[nodiscard]] Subject subject_of(const Settings& settings, const ModelName& model);

}  // namespace slipstream::hub
