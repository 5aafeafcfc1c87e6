#include "cli/eval/eval.h"

#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/format.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "bench/quality/needles.h"
#include "bench/quality/report.h"
#include "bench/quality/suite.h"
#include "bench/quality/work/sandbox.h"
#include "cli/doctor/probes.h"
#include "cli/hub/find_model.h"
#include "cli/kv_profile.h"
#include "cli/plugin_path.h"
#include "cli/progress.h"
#include "cli/scheme_list.h"
#include "cli/scratch_folder.h"
#include "cli/version.h"
#include "engine/forecast/gguf_model.h"
#include "engine/model/kv_scheme.h"
#include "engine/model/model.h"
#include "engine/model/model_fingerprint.h"

namespace slipstream::eval {
namespace {

Result<quality::Surroundings> look_around(const std::string& model) {
  const Result<GgufModel> header = GgufModel::open(model);
  if (!header) return std::unexpected(header.error());
  const Result<Fingerprint> fingerprint = fingerprint_of(model, "f16");
  if (!fingerprint) return std::unexpected(fingerprint.error());
  std::uint64_t n_bytes = 0;
  for (const std::filesystem::path& file : header->files()) {
    std::error_code error;
    n_bytes += std::filesystem::file_size(file, error);
  }
  const Result<std::string> cpuinfo = read_small_file("/proc/cpuinfo");
  const doctor::CpuInfo cpu = doctor::parse_cpuinfo(cpuinfo ? *cpuinfo : "");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return quality::Surroundings{.created = format_text("{:%FT%TZ}", now),
                               .slipstream = kVersion,
                               .llama_cpp = llama_version(),
                               .ggml = ggml_version(),
                               .cpu = cpu.model,
                               .n_cpus = static_cast<int>(cpu.n_cpus),
                               .model_fingerprint = to_hex(*fingerprint),
                               .model_bytes = n_bytes};
}

Result<quality::SuiteOptions> suite_options(const Options& options, const std::string& scratch) {
  quality::SuiteOptions suite{.arm = options.arm,
                              .schemes = join_schemes(options.schemes),
                              .arm_command = {"/proc/self/exe", "eval-arm"}};
  suite.arm.base_directory = scratch;
  if (suite.arm.tasks.empty())
    suite.arm.tasks.assign(quality::kDefaultTasks.begin(), quality::kDefaultTasks.end());
  if (suite.arm.needle_kinds.empty())
    suite.arm.needle_kinds.assign(quality::kNeedleKinds.begin(), quality::kNeedleKinds.end());
  for (const std::string& name : suite.schemes) {
    const Result<KvScheme> scheme = parse_kv_scheme(name);
    if (!scheme) return std::unexpected(scheme.error());
    if (scheme->attend() != 0) suite.arm.n_decoded = quality::kDecodedTokens;
    if (!scheme->is_turbo() || !suite.arm.plugin.empty()) continue;
    suite.arm.plugin = options.plugin;
    if (!options.plugin.empty()) continue;
    const Result<std::filesystem::path> plugin = find_turbo_plugin();
    if (!plugin) return std::unexpected(plugin.error());
    suite.arm.plugin = plugin->string();
  }
  if (!suite.arm.plugin.empty()) {
    suite.arm.key_profile = effective_key_profile(find_key_profile(suite.arm.model)).string();
  }
  return suite;
}

// Whether a scheme failed, or its verdict counts as a failure by --fail-on.
bool is_failure(std::span<const quality::SchemeResult> schemes,
                std::optional<quality::Verdict> fail_on) {
  return std::ranges::any_of(schemes, [&](const quality::SchemeResult& scheme) {
    return !scheme.error.empty() ||
           (fail_on && scheme.judgement && scheme.judgement->verdict >= *fail_on);
  });
}

Result<int> try_eval(Options options) {
  const Result<std::filesystem::path> model = find_model(options.arm.model);
  if (!model) return std::unexpected(model.error());
  options.arm.model = model->string();
  std::optional<quality::Verdict> fail_on;
  if (!options.fail_on.empty()) {
    const Result<quality::Verdict> verdict = quality::parse_verdict(options.fail_on);
    if (!verdict) return std::unexpected(verdict.error());
    fail_on = *verdict;
  }
  if (std::ranges::contains(options.arm.tasks, "code")) {
    // Said now, and not after what comes before it has taken an hour.
    const Result<quality::Sandbox> sandbox = quality::Sandbox::open();
    if (!sandbox) return std::unexpected(sandbox.error());
  }
  const Result<quality::Surroundings> surroundings = look_around(options.arm.model);
  if (!surroundings) return std::unexpected(surroundings.error());
  std::error_code error;
  const std::filesystem::path parent = options.out.empty()
                                           ? std::filesystem::temp_directory_path(error)
                                           : std::filesystem::path(options.out);
  const Result<ScratchFolder> scratch = ScratchFolder::create(parent);
  if (!scratch) return std::unexpected(scratch.error());
  const Result<quality::SuiteOptions> suite = suite_options(options, scratch->path());
  if (!suite) return std::unexpected(suite.error());

  Result<std::vector<quality::SchemeResult>> schemes = [&] {
    Progress progress(format_text("measuring {} schemes", suite->schemes.size()));
    return quality::run_suite(*suite, [&](double done) { progress.show(done); });
  }();
  if (!schemes) return std::unexpected(schemes.error());
  const quality::Json report = quality::make_report(*schemes, suite->arm, *surroundings);
  std::fputs(quality::report_for_terminal(report).c_str(), stdout);
  if (!options.out.empty()) {
    if (const auto written = quality::write_report(report, options.out); !written) {
      return std::unexpected(written.error());
    }
  }
  return is_failure(*schemes, fail_on) ? 1 : 0;
}

}  // namespace

int eval(const Options& options) {
  log::set_level(log::Level::kWarn);  // a person reads the output
  const Result<int> status = try_eval(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream eval: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace slipstream::eval
