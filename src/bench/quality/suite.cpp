#include "bench/quality/suite.h"

#include <algorithm>

#include "base/format.h"
#include "bench/child_task.h"
#include "bench/quality/arm_json.h"

namespace slipstream::quality {

Result<ArmResult> run_arm_in_child(const SuiteOptions& options, const std::string& kv,
                                   const OnProgress& on_progress) {
  ArmOptions arm = options.arm;
  arm.kv = kv;
  const Result<nlohmann::json> answer = bench::ask_child(options.arm_command, arm, on_progress);
  if (!answer) return std::unexpected(answer.error());
  try {
    return answer->get<ArmResult>();
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kCorrupt, format_text("its answer cannot be read: {}", error.what()));
  }
}

Result<std::vector<SchemeResult>> run_suite(const SuiteOptions& options,
                                            const OnProgress& on_progress) {
  std::vector<std::string> schemes = {"f16"};
  for (const std::string& kv : options.schemes) {
    if (!std::ranges::contains(schemes, kv)) schemes.push_back(kv);
  }
  if (schemes.size() == 1) {
    return fail(Code::kInvalidArgument, "there is nothing to compare with f16: name a scheme");
  }
  std::vector<SchemeResult> results;
  for (const std::string& kv : schemes) {
    const auto n_before = static_cast<double>(results.size());
    Result<ArmResult> found = run_arm_in_child(options, kv, [&](double done) {
      on_progress((n_before + done) / static_cast<double>(schemes.size()));
    });
    if (!found) {
      if (kv == "f16" || found.error().code == Code::kCancelled) {
        return fail(found.error().code, format_text("{}: {}", kv, found.error().message));
      }
      results.push_back({.kv = kv, .error = found.error().message});
      continue;
    }
    results.push_back({.kv = kv, .found = std::move(*found)});
    if (kv != "f16") {
      results.back().judgement = judge(results.back().found, results.front().found);
    }
  }
  return results;
}

int answer_as_arm() {
  return bench::answer_parent([](const nlohmann::json& task,
                                 const OnProgress& on_progress) -> Result<nlohmann::json> {
    const Result<ArmResult> result = run_arm(
        task.get<ArmOptions>(), [&](double done, std::string_view /*what*/) { on_progress(done); });
    if (!result) return std::unexpected(result.error());
    return nlohmann::json(*result);
  });
}

}  // namespace slipstream::quality
