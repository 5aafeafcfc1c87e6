#include "cli/bench/server_load.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/result.h"
#include "bench/load/load_run.h"
#include "bench/load/load_summary.h"
#include "bench/load/stream_client.h"
#include "bench/quality/plain_text.h"
#include "cli/progress.h"

namespace slipstream::bench {
namespace {

using nlohmann::json;

// An average for English with current tokenizers. The server reports the actual count.
constexpr std::size_t kBytesPerToken = 4;

// Turns "localhost:8080", "http://host:8080/" and ".../v1" into ".../v1".
std::string base_url(std::string url) {
  if (!url.contains("://")) url = "http://" + url;
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with("/v1")) url += "/v1";
  return url;
}

Result<std::string> read_text(const std::string& path, std::size_t n_bytes) {
  if (path.empty()) return quality::plain_text(std::max(n_bytes, quality::kPlainTextBytes));
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, format_text("cannot open {}", path));
  std::string text{std::istreambuf_iterator(file), std::istreambuf_iterator<char>()};
  if (text.empty()) return fail(Code::kInvalidArgument, format_text("{} has no text", path));
  return text;
}

json to_line(const RequestTrace& trace) {
  return {{"clients", trace.n_clients},
          {"asked_s", trace.asked_s},
          {"events_s", trace.events_s},
          {"ended_s", trace.ended_s},
          {"prompt_tokens", trace.n_prompt_tokens},
          {"tokens", trace.n_tokens},
          {"error", trace.error}};
}

Result<void> write_files(const std::filesystem::path& directory,
                         const std::vector<RequestTrace>& traces,
                         const std::vector<LoadSummary>& loads, const LoadTask& task) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::ofstream requests(directory / "requests.jsonl");
  for (const RequestTrace& trace : traces) requests << to_line(trace).dump() << "\n";
  std::ofstream table(directory / "load.md");
  table << format_text(
               "# {} under load\n\nmodel {}, answers of {} tokens, prompts of {:.0f}; p50 / p90 / "
               "p99\n\n",
               task.url, task.model, task.n_tokens, loads.front().prompt_tokens)
        << load_table(loads, true);
  requests.close();
  table.close();
  if (!requests || !table) {
    return fail(Code::kIo, format_text("cannot write into {}", directory.string()));
  }
  return {};
}

Result<int> try_run(const ServerLoadOptions& options) {
  const std::optional<LoadLimits> limits =
      options.limits.empty() ? LoadLimits{} : parse_limits(options.limits);
  if (!limits) {
    return fail(Code::kInvalidArgument,
                "--goodput: say limits in milliseconds, such as ttft=500,tpot=50,e2e=10000");
  }
  LoadTask task{.url = base_url(options.url),
                .api_key = options.api_key,
                .model = options.model,
                .text = {},
                .n_prompt_bytes = static_cast<std::size_t>(options.n_prompt) * kBytesPerToken,
                .n_tokens = options.n_tokens};
  Result<std::string> text = read_text(options.text, 4 * task.n_prompt_bytes);
  if (!text) return std::unexpected(text.error());
  task.text = std::move(*text);
  if (task.model.empty()) {
    std::string error;
    task.model = StreamClient(task.url, task.api_key, 10).first_model(error);
    if (task.model.empty()) return fail(Code::kNotFound, std::move(error));
  }

  std::vector<RequestTrace> all;
  std::vector<LoadSummary> loads;
  for (const int n_clients : options.n_clients) {
    task.n_clients = n_clients;
    task.n_requests = options.n_requests > 0 ? options.n_requests : std::max(16, 4 * n_clients);
    Progress progress(format_text("{} clients", n_clients));
    (void)run_load({.url = task.url,  // a first request that is not counted
                    .api_key = task.api_key,
                    .model = task.model,
                    .text = "Once upon a time ",
                    .n_prompt_bytes = 64,
                    .n_tokens = 1,
                    .n_requests = 1},
                   [](double) {});
    std::vector<RequestTrace> traces = run_load(task, [&](double done) { progress.show(done); });
    loads.push_back(summarise_load(traces, *limits));
    all.insert(all.end(), traces.begin(), traces.end());
  }
  if (!options.directory.empty()) {
    const Result<void> written = write_files(options.directory, all, loads, task);
    if (!written) return std::unexpected(written.error());
  }
  std::printf("%s, %s: prompts of %.0f tokens, answers of %d; p50 / p90 / p99\n%s",
              task.url.c_str(), task.model.c_str(), loads.front().prompt_tokens, task.n_tokens,
              load_table(loads, false).c_str());
  const auto failed =
      std::ranges::find_if(loads, [](const LoadSummary& l) { return l.n_failed > 0; });
  if (failed == loads.end()) return 0;
  std::fprintf(stderr, "some requests failed, such as: %s\n", failed->an_error.c_str());
  return 1;
}

}  // namespace

int run(const ServerLoadOptions& options) {
  const Result<int> status = try_run(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream bench: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace slipstream::bench
