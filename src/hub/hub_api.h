// HubApi: questions to the hub that are answered with JSON: what a repository holds, and which
// repositories there are.
//
// Answers are the hub's word: listing.h and search_results.h check what becomes of them. A question
// that fails for a while is asked again.
//
// Threads: thread-compatible.
// Errors:  as of http_verdict.h; kCorrupt for an answer that is not JSON; kCancelled;
//          kInvalidArgument where HF_HUB_OFFLINE forbids to ask.
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
  // Repositories with models in GGUF, those that are downloaded most first.
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

// The page of a model and who asks, for messages.
[[nodiscard]] Subject subject_of(const Settings& settings, const ModelName& model);

}  // namespace slipstream::hub
