#include "hub/hub_api.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/format.h"
#include "base/format_bytes.h"
#include "hub/range_download.h"

namespace slipstream::hub {
namespace {

// For what the hub says about one repository. One with 10,000 files takes 3 MB.
constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;

}  // namespace

Subject subject_of(const Settings& settings, const ModelName& model) {
  return {.repo_id = model.repo_id(),
          .page = format_text("{}/{}", settings.endpoint, model.repo_id()),
          .has_token = !settings.token.empty()};
}

HubApi::HubApi(const Settings& settings, int n_retries, std::stop_token stop)
    : settings_(settings),
      n_retries_(n_retries),
      stop_(std::move(stop)),
      on_stop_(stop_, [this] { is_stopped_ = true; }) {}

Result<RepoListing> HubApi::list(const ModelName& model) {
  const Result<std::string> body =
      get(format_text("/api/models/{}/revision/main?blobs=true", model.repo_id()),
          subject_of(settings_, model));
  if (!body) return std::unexpected(body.error());
  return parse_listing(*body);
}

Result<std::vector<SearchResult>> HubApi::search(std::string_view text, int n_max) {
  const Subject subject{.repo_id = format_text("a search for '{}'", text),
                        .page = settings_.endpoint,
                        .has_token = !settings_.token.empty()};
  const Result<std::string> body =
      get(format_text("/api/models?search={}&filter=gguf&sort=downloads&direction=-1&limit={}",
                      escape_query(text), n_max),
          subject);
  if (!body) return std::unexpected(body.error());
  return parse_search_results(*body);
}

Result<std::string> HubApi::get(const std::string& path, const Subject& subject) {
  if (settings_.is_offline) {
    return fail(Code::kInvalidArgument,
                "HF_HUB_OFFLINE is set, and asking the hub needs the network: unset it");
  }
  const HttpRequest request{
      .url = settings_.endpoint + path, .token = settings_.token, .range = std::nullopt};
  for (int n_failures = 1;; ++n_failures) {
    std::string body;
    const HttpAnswer answer = connection_.get(
        request,
        [&](const HttpAnswer&, std::span<const std::byte> bytes) {
          body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          return body.size() <= kAnswerBytesMax;
        },
        &is_stopped_);
    if (is_stopped_) return std::unexpected(stopped_download());
    if (answer.is_stopped_by_taker) {
      return fail(Code::kCorrupt, format_text("the hub's answer about {} is longer than {}",
                                              subject.repo_id, format_bytes(kAnswerBytesMax)));
    }
    Verdict verdict = judge(answer, subject);
    if (!verdict.error) return body;
    // An offline user should be told at once. (Downloads are retried: a host that was reached
    // before may be unreachable for a while.)
    const bool is_worth_it = verdict.is_worth_retrying && !answer.is_unreachable;
    if (!is_worth_it || n_failures > n_retries_) return std::unexpected(std::move(*verdict.error));
    pause(std::max(backoff(n_failures), verdict.wait_min));
  }
}

void HubApi::pause(std::chrono::milliseconds time) const {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop_, time, [] { return false; });
}

}  // namespace slipstream::hub
