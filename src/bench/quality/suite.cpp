#include "bench/quality/suite.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>

#include "base/format.h"
#include "base/log.h"
#include "bench/quality/arm_json.h"
#include "bench/quality/child.h"

namespace slipstream::quality {
namespace {

constexpr std::string_view kProgress = "progress ";

bool take_progress(std::string_view line, const OnProgress& on_progress) {
  if (!line.starts_with(kProgress)) return false;
  line.remove_prefix(kProgress.size());
  double done = 0;
  std::from_chars(line.data(), line.data() + line.size(), done);
  on_progress(done);
  return true;
}

// What is known of a child that gave no result.
std::string why_it_died(const ChildEnd& end) {
  std::string why = end.signal == 0 ? format_text("its process ended with status {}", end.status)
                                    : format_text("its process was ended by signal {} ({})",
                                                  end.signal, strsignal(end.signal));
  if (end.signal == SIGKILL) why += "; maybe memory did not suffice: try a smaller --depth";
  return end.complaint.empty() ? why : format_text("{}: {}", why, end.complaint);
}

Result<ArmResult> read_result(const ChildEnd& end) {
  const nlohmann::json answer = nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return fail(Code::kUnsupported, why_it_died(end));
  try {
    if (answer.contains("error")) {
      return fail(Code::kUnsupported, answer["error"].get<std::string>());
    }
    return answer.at("result").get<ArmResult>();
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kCorrupt, format_text("its answer cannot be read: {}", error.what()));
  }
}

Result<ArmResult> run_in_child(const SuiteOptions& options, const std::string& kv,
                               const OnProgress& on_progress) {
  ArmOptions arm = options.arm;
  arm.kv = kv;
  const Result<ChildEnd> end =
      run_child(options.arm_command, nlohmann::json(arm).dump(),
                [&](std::string_view line) { return take_progress(line, on_progress); });
  if (!end) return std::unexpected(end.error());
  return read_result(*end);
}

}  // namespace

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
    Result<ArmResult> found = run_in_child(options, kv, [&](double done) {
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
    if (kv != "f16") results.back().judgement = judge(results.back().found.divergence);
  }
  return results;
}

int answer_as_arm() {
  die_with_parent();
  log::set_level(log::Level::kWarn);
  const std::string input(std::istreambuf_iterator(std::cin), std::istreambuf_iterator<char>());
  nlohmann::json answer;
  try {
    const Result<ArmResult> result = run_arm(
        nlohmann::json::parse(input).get<ArmOptions>(), [](double done, std::string_view what) {
          std::fprintf(stderr, "%s\n", format_text("{}{:.4f} {}", kProgress, done, what).c_str());
        });
    if (result) {
      answer["result"] = *result;
    } else {
      answer["error"] = result.error().message;
    }
  } catch (const nlohmann::json::exception& error) {
    answer["error"] = format_text("the options cannot be read: {}", error.what());
  }
  // A model may write bytes that are no UTF-8; they are replaced.
  const std::string line =
      answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fputs(line.c_str(), stdout);
  return answer.contains("result") ? 0 : 1;
}

}  // namespace slipstream::quality
