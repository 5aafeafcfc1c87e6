#include "bench/report/findings.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>
#include <tuple>
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
  return format_text("depth {}, {} sequence{}", depth_text(cell.depth), sequences_text(cell),
                     cell.n_sequences == 1 ? "" : "s");
}

double value_of(const Comparison& comparison) { return comparison.ratio.value; }

std::string best_name(const SpeedReport& report) {
  return format_text("stock's best {}", report.matrix.kv.front());
}

// Where another setting of the first scheme is faster than its default; empty if none ever is.
std::string best_setting(const SpeedReport& report) {
  struct Best {
    double decode = 0;
    double prompt = 0;
  };
  std::map<std::tuple<int, int, bool>, Best> best_of;  // by depth and concurrency
  for (const CellSummary& summary : report.cells) {
    const Cell& cell = summary.cell;
    if (!is_setting_of(cell.kv, report.matrix.kv.front()) || summary.n_repeats == 0) continue;
    Best& best = best_of[{cell.depth, cell.n_sequences, cell.shares_depth}];
    best.decode = std::max(best.decode, summary.decode_to_default);
    best.prompt = std::max(best.prompt, summary.prefill_to_default);
  }
  const auto cells = std::views::values(best_of);
  const auto n_decode = std::ranges::count_if(cells, [](const Best& b) { return b.decode > 1; });
  const auto n_prompt = std::ranges::count_if(cells, [](const Best& b) { return b.prompt > 1; });
  if (n_decode + n_prompt == 0) return "";
  const Best most = std::ranges::max(cells, {}, &Best::decode);
  return format_text(
      "{} counts at its fastest setting in each cell: with flash attention and repacked weights, "
      "its default, or without (-fa off, --no-repack). Another than the default decodes faster in "
      "{} of {} cells, up to {:.1f} times, and reads prompts faster in {}.",
      report.matrix.kv.front(), n_decode, best_of.size(), most.decode, n_prompt);
}

// Which depths were filled by repeating; empty if none was.
std::string repeated_depths(const SpeedReport& report) {
  const int n_tokens = report.header.work.value("computed depth", 0);
  if (n_tokens == 0) return "";
  return format_text(
      "Beyond a depth of {0} one cache holds the state of its first {0} tokens again and again: "
      "what "
      "a step costs depends on how many tokens are in the cache, not on which.",
      depth_text(n_tokens));
}

}  // namespace

std::vector<std::string> gains(const SpeedReport& report) {
  std::vector<std::string> sentences;
  const std::string baseline = best_name(report);
  for (const std::string& kv : compared(report)) {
    std::vector<Comparison> all = comparisons(report, kv);
    std::erase_if(all, [](const Comparison& c) { return c.ratio.verdict != Verdict::kFaster; });
    if (all.empty()) continue;
    const Comparison best = std::ranges::max(all, {}, value_of);
    const std::string to_default =
        best.to_default > best.ratio.value
            ? format_text(", {:.1f} times as fast as its default", best.to_default)
            : "";
    sentences.push_back(format_text("{} {} up to {:.1f} times as fast as {}{} ({}).", kv, best.what,
                                    best.ratio.value, baseline, to_default,
                                    place(best.cell->cell)));
  }
  return sentences;
}

std::vector<std::string> losses(const SpeedReport& report) {
  std::vector<std::string> sentences;
  const std::string baseline = best_name(report);
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
  for (const std::string& sentence : {best_setting(report), repeated_depths(report)}) {
    if (!sentence.empty()) sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace slipstream::bench
