#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "base/format.h"
#include "base/unique_fd.h"
#include "cli/doctor/probes.h"

namespace slipstream::doctor {
namespace {

// The features that the attention kernels can use, best first, under the kernel's names. The first
// seven are x86, the rest ARM.
constexpr std::array<std::string_view, 11> kUsefulFeatures = {
    "amx_int8", "amx_bf16", "avx512_vnni", "avx_vnni", "avx512bw", "avx2",
    "f16c",     "sve2",     "i8mm",        "asimddp",  "asimd"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Finding judge_kernels() {
  // Highway's own dispatch decides at run time. The best target has the lowest bit.
  const std::int64_t targets = hwy::SupportedTargets();
  const std::string best = hwy::TargetName(targets & -targets);
  const bool scalar_only = best == "EMU128" || best == "SCALAR";
  if (scalar_only) {
    return {.status = Status::kNote,
            .topic = "kernels",
            .value = best + " (no vector instructions we know)",
            .advice = "expect low speed: in a virtual machine, pass the host's CPU through"};
  }
  return {.status = Status::kGood,
          .topic = "kernels",
          .value = best + " (best for this CPU)",
          .advice = ""};
}

}  // namespace

CpuInfo parse_cpuinfo(std::string_view proc_cpuinfo) {
  CpuInfo cpu;
  for (const auto line_range : std::views::split(proc_cpuinfo, '\n')) {
    const std::string_view line(line_range);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "processor") ++cpu.n_cpus;
    if (key == "model name") cpu.model = value;
    if ((key == "flags" || key == "Features") && cpu.features.empty()) {  // x86, ARM
      for (const auto word : std::views::split(value, ' '))
        cpu.features.emplace_back(word.begin(), word.end());
    }
  }
  return cpu;
}

std::vector<std::string> useful_features(const CpuInfo& cpu) {
  std::vector<std::string> useful;
  for (const std::string_view feature : kUsefulFeatures) {
    if (std::ranges::contains(cpu.features, feature)) useful.emplace_back(feature);
  }
  return useful;
}

std::vector<Finding> probe_cpu() {
  const Result<std::string> text = read_small_file("/proc/cpuinfo");
  if (!text) {
    return {{.status = Status::kNote,
             .topic = "cpu",
             .value = text.error().message,
             .advice = "mount /proc in the container"}};
  }
  const CpuInfo cpu = parse_cpuinfo(*text);
  const std::vector<std::string> useful = useful_features(cpu);
  return {
      {.status = Status::kGood,
       .topic = "cpu",
       .value = format_text("{}, {} {}", cpu.model, cpu.n_cpus, cpu.n_cpus == 1 ? "core" : "cores"),
       .advice = ""},
      {.status = useful.empty() ? Status::kNote : Status::kGood,
       .topic = "cpu features",
       .value = useful.empty() ? "none that our kernels use" : joined(useful),
       .advice = useful.empty() ? "in a virtual machine, pass the host's CPU through" : ""},
      judge_kernels()};
}

}  // namespace slipstream::doctor
