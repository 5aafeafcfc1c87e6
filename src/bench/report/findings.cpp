#include "bench/report/findings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "bench/report/speed_table.h"

namespace slipstream::bench {
namespace {

struct Comparison {
  const CellSummary* cell;
  std::string_view what;  // "decodes" or "reads a prompt"
  Ratio ratio;
  double to_default;
};

// The schemes that are compared with the first one.
std::vector<std::string> compared(const SpeedReport& report) {
  std::vector<std::string> schemes = report.matrix.kv;
  std::erase_if(schemes,
                [&](const std::string& kv) { return is_setting_of(kv, report.matrix.kv.front()); });
  return schemes;
}

std::vector<Comparison> comparisons(const SpeedReport& report, std::string_view kv) {
  std::vector<Comparison> all;
  for (const CellSummary& cell : report.cells) {
    if (cell.cell.kv != kv || cell.n_repeats == 0) continue;
    all.push_back({.cell = &cell,
                   .what = "decodes",
                   .ratio = cell.decode_ratio,
                   .to_default = cell.decode_to_default});
    all.push_back({.cell = &cell,
                   .what = "reads prompts",
                   .ratio = cell.prefill_ratio,
                   .to_default = cell.prefill_to_default});
  }
  return all;
}

std::string place(const Cell& cell) {
  return format_text("depth {}, {} sequence{}", depth_text(cell.depth), cell.n_sequences,
                     cell.n_sequences == 1 ? "" : "s");
}

double value_of(const Comparison& comparison) { return comparison.ratio.value; }

// Where the first scheme is faster without flash attention; empty if it never is.
std::string best_setting(const SpeedReport& report) {
  std::size_t n_cells = 0;
  std::size_t n_decode = 0;
  std::size_t n_prompt = 0;
  double most = 1;
  for (const CellSummary& cell : report.cells) {
    if (has_flash_attention(cell.cell.kv) || cell.n_repeats == 0) continue;
    ++n_cells;
    if (cell.decode_to_default > 1) ++n_decode;
    if (cell.prefill_to_default > 1) ++n_prompt;
    most = std::max(most, cell.decode_to_default);
  }
  if (n_decode + n_prompt == 0) return "";
  return format_text(
      "{0} counts at its faster setting, with flash attention, its default, or without (-fa off). "
      "Without, it decodes faster in {1} of {2} cells, up to {3:.1f} times, and reads prompts "
      "faster in {4}.",
      report.matrix.kv.front(), n_decode, n_cells, most, n_prompt);
}

}  // namespace

std::vector<std::string> gains(const SpeedReport& report) {
  std::vector<std::string> sentences;
  const std::string& baseline = report.matrix.kv.front();
  for (const std::string& kv : compared(report)) {
    std::vector<Comparison> all = comparisons(report, kv);
    std::erase_if(all, [](const Comparison& c) { return c.ratio.verdict != Verdict::kFaster; });
    if (all.empty()) continue;
    const Comparison best = std::ranges::max(all, {}, value_of);
    const std::string to_default =
        best.to_default > best.ratio.value
            ? format_text(", {:.1f} times as fast as with its default", best.to_default)
            : "";
    sentences.push_back(format_text("{} {} up to {:.1f} times as fast as {}{} ({}).", kv, best.what,
                                    best.ratio.value, baseline, to_default,
                                    place(best.cell->cell)));
  }
  return sentences;
}

std::vector<std::string> losses(const SpeedReport& report) {
  std::vector<std::string> sentences;
  const std::string& baseline = report.matrix.kv.front();
  for (const std::string& kv : compared(report)) {
    const std::vector<Comparison> all = comparisons(report, kv);
    std::vector<Comparison> slower = all;
    std::erase_if(slower, [](const Comparison& c) { return c.ratio.verdict != Verdict::kSlower; });
    if (slower.empty()) continue;
    const Comparison worst = std::ranges::min(slower, {}, value_of);
    sentences.push_back(format_text(
        "{} is slower than {} in {} of {} figures, down to {:.2f}x ({}, {}).", kv, baseline,
        slower.size(), all.size(), worst.ratio.value, worst.what, place(worst.cell->cell)));
  }
  for (const CellSummary& cell : report.cells) {
    if (cell.n_repeats == 0) {
      sentences.push_back(format_text("{} could not be measured at {}: {}", cell.cell.kv,
                                      place(cell.cell), cell.error));
    }
  }
  return sentences;
}

std::vector<std::string> caveats(const SpeedReport& report) {
  constexpr double kBusy = 0.9;
  std::vector<std::string> sentences;
  const auto n_busy = std::ranges::count_if(report.cells, [](const CellSummary& cell) {
    return cell.n_repeats > 0 && cell.cpu_share_min < kBusy;
  });
  if (n_busy > 0) {
    sentences.push_back(format_text(
        "In {} of {} cells a process got less than {:.0f} % of its cores: the machine was busy, or "
        "its threads waited for each other. The same command measures again what got less than "
        "half.",
        n_busy, report.cells.size(), kBusy * 100));
  }
  if (report.matrix.n_repeats < 3) {
    sentences.push_back(format_text("Only {} of each: a median of three says more.",
                                    report.matrix.n_repeats == 1 ? "one repeat" : "two repeats"));
  }
  if (report.seconds > 0) {
    sentences.push_back(format_text("Measuring took {:.0f} minutes.", report.seconds / 60));
  }
  sentences.emplace_back(
      "Tokens are those of a text, not sampled: what is timed is the engine's computing, without "
      "sampling and without a server.");
  sentences.emplace_back(
      "A ratio marked ~ has ranges that overlap: it is not a difference yet. LOSS is slower.");
  sentences.emplace_back(
      "f16, q8_0 and q4_0 run the packaged llama.cpp without our plugin. Flash attention is on "
      "except in \"-fa off\"; q8_0 and q4_0 need it.");
  if (std::string best = best_setting(report); !best.empty()) sentences.push_back(std::move(best));
  return sentences;
}

}  // namespace slipstream::bench
