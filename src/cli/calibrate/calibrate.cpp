#include "cli/calibrate/calibrate.h"

#include <ggml.h>
#include <llama.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "base/log.h"
#include "bench/calibrate/profile.h"
#include "bench/calibrate/report.h"
#include "cli/hub/find_model.h"
#include "cli/kv_profile.h"
#include "cli/plugin_path.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "cli/scratch_folder.h"
#include "cli/version.h"
#include "contract/environment.h"
#include "engine/model/model_fingerprint.h"

namespace slipstream::calibrate {
namespace {

Result<void> complete(Options& work, const ScratchFolder& scratch) {
  const Result<std::filesystem::path> model = find_model(work.model);
  if (!model) return std::unexpected(model.error());
  work.model = model->string();
  if (work.plugin.empty()) {
    const Result<std::filesystem::path> plugin = find_turbo_plugin();
    if (!plugin) return std::unexpected(plugin.error());
    work.plugin = plugin->string();
  }
  work.scratch = scratch.path();
  work.key_profile = work.scratch + "/keys";
  work.probe_command = {"/proc/self/exe", "calibrate-probe"};
  work.arm_command = {"/proc/self/exe", "eval-arm"};
  return {};
}

Result<int> try_calibrate(const CommandOptions& options) {
  std::error_code error;
  const Result<ScratchFolder> scratch =
      ScratchFolder::create(std::filesystem::temp_directory_path(error));
  if (!scratch) return std::unexpected(scratch.error());
  Options work = options.work;
  if (const Result<void> done = complete(work, *scratch); !done) {
    return std::unexpected(done.error());
  }
  const Result<Fingerprint> fingerprint = fingerprint_of_model(work.model);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  const Result<Evidence> evidence = [&] {
    Progress progress("calibrating");
    return calibrate(work, [&](double done, std::string_view what) {
      progress.rename(std::string(what));
      progress.show(done);
    });
  }();
  if (!evidence) return std::unexpected(evidence.error());
  std::fputs(report_for_terminal(*evidence).c_str(), stdout);

  const std::string id = to_hex(*fingerprint);
  const std::filesystem::path path = options.out.empty() ? kv_profile_directory() / (id + ".json")
                                                         : std::filesystem::path(options.out);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const Result<void> written =
      write_profile({.slipstream = kVersion,
                     .fingerprint = id,
                     .model_file = std::filesystem::path(work.model).filename().string(),
                     .keys = evidence->probe.key_fitting.n_layers > 0 ? work.key_profile : "",
                     .created = format_text("{:%FT%TZ}", now),
                     .llama_cpp = llama_version(),
                     .ggml = ggml_version(),
                     .machine = describe_machine(),
                     .evidence = *evidence},
                    path);
  if (!written) return std::unexpected(written.error());
  std::fputs(format_text("{} ({:.0f} s)\n", path.string(), evidence->seconds).c_str(), stdout);
  return 0;
}

}  // namespace

int run(const CommandOptions& options) {
  log::set_level(log::Level::kWarn);        // a person reads the output
  (void)unsetenv(turbo::kProfileVariable);  // the measurements belong to the profile made here
  const Result<int> status = try_calibrate(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream calibrate: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace slipstream::calibrate
