#include "cli/hub/list.h"

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "base/format_bytes.h"
#include "hub/settings.h"

namespace slipstream::list {
namespace {

std::string format_age(std::chrono::seconds age) {
  using std::chrono::days;
  using std::chrono::hours;
  using std::chrono::minutes;
  const auto told = [](auto n, std::string_view unit) {
    return format_text("{} {}{} ago", n, unit, n == 1 ? "" : "s");
  };
  if (age < minutes(2)) return "just now";
  if (age < hours(2)) return told(age / minutes(1), "minute");
  if (age < days(2)) return told(age / hours(1), "hour");
  return told(age / days(1), "day");
}

std::string format_files(const hub::InstalledModel& model) {
  std::string first = model.files.front().filename().string();
  if (model.files.size() == 1) return first;
  return format_text("{} and {} more", first, model.files.size() - 1);
}

Result<void> try_list(const Options& options) {
  const Result<hub::Settings> settings = hub::read_settings();
  if (!settings) return std::unexpected(settings.error());
  const Result<std::vector<hub::InstalledModel>> models = hub::list_installed(settings->cache);
  if (!models) return std::unexpected(models.error());
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (models->empty()) {
    std::fprintf(stderr, "no models in %s: slipstream pull org/repo installs one\n",
                 settings->cache.c_str());
  } else {
    std::fputs(format_models(*models, now, options.shows_paths).c_str(), stdout);
  }
  for (const hub::ModelName& repo : hub::list_repos(settings->cache)) {
    const hub::Leftovers left = hub::find_leftovers(hub::RepoCache(settings->cache, repo));
    if (left.files.empty()) continue;
    std::fprintf(stderr, "%s\n",
                 format_text("{} has an unfinished download of {}: slipstream pull resumes it",
                             repo.repo_id(), format_bytes(left.n_bytes))
                     .c_str());
  }
  return {};
}

}  // namespace

std::string format_models(std::span<const hub::InstalledModel> models, std::chrono::sys_seconds now,
                          bool shows_paths) {
  std::size_t width = 4;
  for (const hub::InstalledModel& model : models) {
    width = std::max(width, model.name.text().size());
  }
  std::string text = format_text("{:<{}}  {:>9}  {:<14}  {}\n", "NAME", width, "SIZE", "LAST USED",
                                 shows_paths ? "PATH" : "FILES");
  for (const hub::InstalledModel& model : models) {
    text += format_text("{:<{}}  {:>9}  {:<14}  {}\n", model.name.text(), width,
                        format_bytes(model.n_bytes), format_age(now - model.last_used),
                        shows_paths ? model.files.front().string() : format_files(model));
  }
  return text;
}

int run(const Options& options) {
  const Result<void> listed = try_list(options);
  if (listed) return 0;
  std::fprintf(stderr, "slipstream list: %s\n", listed.error().message.c_str());
  return 1;
}

}  // namespace slipstream::list
