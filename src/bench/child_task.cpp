#include "bench/child_task.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "bench/child.h"

namespace slipstream::bench {
namespace {

using nlohmann::json;

constexpr std::string_view kProgress = "progress ";

bool take_progress(std::string_view line, const OnProgress& on_progress) {
  if (!line.starts_with(kProgress)) return false;
  line.remove_prefix(kProgress.size());
  double done = 0;
  std::from_chars(line.data(), line.data() + line.size(), done);
  on_progress(done);
  return true;
}

// What is known about a child that returned no result.
std::string why_it_died(const ChildEnd& end) {
  std::string why = end.signal == 0 ? format_text("its process ended with status {}", end.status)
                                    : format_text("its process was killed by signal {} ({})",
                                                  end.signal, strsignal(end.signal));
  if (end.signal == SIGKILL) why += "; memory may have run out: try a smaller --depth";
  return end.complaint.empty() ? why : format_text("{}: {}", why, end.complaint);
}

}  // namespace

Result<json> ask_child(const std::vector<std::string>& command, const json& task,
                       const OnProgress& on_progress) {
  const Result<ChildEnd> end = run_child_until_signal(
      command, task.dump(),
      [&](std::string_view line) { return take_progress(line, on_progress); });
  if (!end) return std::unexpected(end.error());
  const json answer = json::parse(end->out, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("result")) return answer["result"];
  if (answer.is_object() && answer.contains("error") && answer["error"].is_string()) {
    return fail(Code::kUnsupported, answer["error"].get<std::string>());
  }
  return fail(Code::kUnsupported, why_it_died(*end));
}

int answer_parent(const ChildWork& work) {
  using Clock = std::chrono::steady_clock;
  die_with_parent();
  log::set_level(log::Level::kWarn);
  const std::string input{std::istreambuf_iterator(std::cin), std::istreambuf_iterator<char>()};
  Clock::time_point told;
  const auto tell = [&](double done) {
    if (Clock::now() - told < std::chrono::milliseconds(100)) return;
    told = Clock::now();
    std::fprintf(stderr, "%s\n", format_text("{}{:.4f}", kProgress, done).c_str());
  };
  json answer;
  try {
    const Result<json> result = work(json::parse(input), tell);
    if (result) {
      answer["result"] = *result;
    } else {
      answer["error"] = result.error().message;
    }
  } catch (const json::exception& error) {
    answer["error"] = format_text("the task cannot be read: {}", error.what());
  }
  // A model may write bytes that are not UTF-8; they are replaced.
  std::fputs((answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n").c_str(), stdout);
  return answer.contains("result") ? 0 : 1;
}

}  // namespace slipstream::bench
