// Eviction against the choice by query and against rescue: how many names planted in a text are found
// when a part of the text has left the cache (docs/quality.md, decision 028). A measurement, not a
// feature: nothing in the product evicts by score.
//
//   evictions MODEL --depth 4096 --kept 1024,2048,3072 --texts 6 --text TEXT --out DIR
//
// A run can be made in parts (--policies, --rescued, --no-schemes, --no-policies) that --join puts
// together. It asks the same questions of turbo4 and of turbo4,attend=N for each budget, as `slipstream eval`
// does, each scheme in a process of its own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "base/format.h"
#include "base/log.h"
#include "bench/quality/suite.h"
#include "contract/scheme.h"
#include "report.h"

namespace slipstream::evictions {
namespace {

struct Options {
  TrialOptions trial = {.policies = {Policy::kRecency, Policy::kRandom, Policy::kMass,
                                     Policy::kWindow, Policy::kTri}};
  std::vector<std::string> policies;
  std::string plugin = SLIPSTREAM_PLUGIN;
  std::string out;
  bool has_schemes = true;
  bool has_policies = true;
  std::vector<std::string> reports;  // of earlier runs, to be put together
};

void show(std::string_view what, double done) {
  std::fprintf(stderr, "\r%s: %3.0f %%", std::string(what).c_str(), 100 * done);
  if (done >= 1) std::fputc('\n', stderr);
}

Result<std::vector<SchemeAnswers>> ask_schemes(const Options& options) {
  std::vector<SchemeAnswers> answers;
  if (!options.has_schemes) return answers;
  quality::SuiteOptions suite{.arm = {.model = options.trial.model,
                                      .plugin = options.plugin,
                                      .text = options.trial.text,
                                      .depths = options.trial.depths,
                                      .n_needle_texts = options.trial.n_texts,
                                      .needle_kinds = kTrialKinds,
                                      .n_threads = options.trial.n_threads,
                                      .tasks = {"needles"}},
                              .schemes = {"turbo4"},
                              .arm_command = {"/proc/self/exe", "--arm"}};
  for (const int n_kept : options.trial.kept_tokens) {
    if (n_kept < turbo::kAttendMin) continue;
    suite.schemes.push_back(format_text("turbo4,attend={}", n_kept));
  }
  Result<std::vector<quality::SchemeResult>> results =
      quality::run_suite(suite, [](double done) { show("schemes", done); });
  if (!results) return std::unexpected(results.error());
  for (quality::SchemeResult& result : *results) {
    if (!result.error.empty()) {
      return fail(Code::kUnsupported, format_text("{}: {}", result.kv, result.error));
    }
    const std::size_t at = result.kv.find('=');
    answers.push_back(
        {.kv = result.kv,
         .n_attended = at == std::string::npos ? 0 : std::stoi(result.kv.substr(at + 1)),
         .answers = std::move(result.found.needles)});
  }
  return answers;
}

Result<void> put_out(const Options& options, const Json& report) {
  std::fputs(report_as_markdown(report).c_str(), stdout);
  if (options.out.empty()) return {};
  return write_report(report, options.out);
}

// What a cell is of. Parts of a run may have the same cells.
constexpr std::array<const char*, 4> kNamesOfCell = {"depth", "arm", "n_kept", "is_rescued"};

Result<void> join(const Options& options) {
  Json whole;
  for (const std::string& path : options.reports) {
    const Json part = Json::parse(std::ifstream(path), nullptr, false);
    if (part.is_discarded() || !part.contains("cells")) {
      return fail(Code::kInvalidArgument, format_text("{} is not a report", path));
    }
    if (whole.is_null()) whole = part;
    for (const Json& cell : part["cells"]) {
      const bool is_known = std::ranges::any_of(whole["cells"], [&](const Json& other) {
        return std::ranges::all_of(
            kNamesOfCell, [&](const char* name) { return cell.at(name) == other.at(name); });
      });
      if (!is_known) whole["cells"].push_back(cell);
    }
  }
  return put_out(options, whole);
}

Result<void> run(Options& options) {
  if (!options.policies.empty()) options.trial.policies.clear();
  for (const std::string& name : options.policies) {
    if (const auto policy = policy_of(name)) options.trial.policies.push_back(*policy);
  }
  if (!options.reports.empty()) return join(options);
  const Result<std::vector<SchemeAnswers>> schemes = ask_schemes(options);
  if (!schemes) return std::unexpected(schemes.error());
  const Result<std::vector<Answered>> answered =
      !options.has_policies ? std::vector<Answered>()
                            : run_trial(options.trial, [](double done) { show("policies", done); });
  if (!answered) return std::unexpected(answered.error());
  return put_out(options, make_report(*answered, *schemes, options.trial));
}

}  // namespace
}  // namespace slipstream::evictions

int main(int argc, char** argv) {
  using namespace slipstream;
  if (argc == 2 && std::string_view(argv[1]) == "--arm") return quality::answer_as_arm();
  evictions::Options options;
  CLI::App app("How many names are found when a part of a text has left the cache");
  app.add_option("model", options.trial.model, "A GGUF file (Qwen3)")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--depth", options.trial.depths, "Tokens of a text")->delimiter(',');
  app.add_option("--kept", options.trial.kept_tokens, "Budgets: tokens that stay, or are read")
      ->delimiter(',');
  app.add_option("--texts", options.trial.n_texts, "Texts at each depth, with 10 questions each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--text", options.trial.text, "What they are made of (default: that of eval)")
      ->check(CLI::ExistingFile);
  app.add_option("--policies", options.policies, "Default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(evictions::kPolicyNames.begin(),
                                                     evictions::kPolicyNames.end())));
  app.add_option("--rescued", options.trial.rescued, "Without rescue (0), with it (1), or 0,1")
      ->delimiter(',');
  app.add_flag("!--no-schemes", options.has_schemes, "Leave out what slipstream eval asks");
  app.add_option("--plugin", options.plugin, "libggml-turbo.so")->capture_default_str();
  app.add_flag("!--no-policies", options.has_policies, "Leave out all but what eval asks");
  app.add_option("--join", options.reports, "Put reports (evictions.json) of one model together");
  app.add_option("-t,--threads", options.trial.n_threads, "Threads (0: one per core)");
  app.add_option("--out", options.out, "Write evictions.json, evictions.md and pictures there");
  CLI11_PARSE(app, argc, argv);
  log::set_level(log::Level::kWarn);
  if (const auto done = evictions::run(options); !done) {
    std::fprintf(stderr, "evictions: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
