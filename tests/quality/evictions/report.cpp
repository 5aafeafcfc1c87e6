#include "report.h"

#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/format.h"
#include "bench/report/text_table.h"

namespace slipstream::evictions {
namespace {

struct Counts {
  int n = 0;
  int n_right = 0;
  int n_found = 0;
  int n_recalled = 0;
  std::map<double, std::pair<int, int>> by_position;  // asked, right

  void add(const Answered& one) {
    ++n;
    n_right += one.is_right ? 1 : 0;
    n_found += one.is_found ? 1 : 0;
    n_recalled += one.n_recalled;
    auto& [n_asked, n_right_there] = by_position[one.position];
    ++n_asked;
    n_right_there += one.is_right ? 1 : 0;
  }
};

struct Cell {
  int depth;
  std::string arm;
  int n_kept;
  bool is_rescued;
  Counts counts = {};

  [[nodiscard]] bool is_of(const Cell& other) const {
    return std::tie(depth, arm, n_kept, is_rescued) ==
           std::tie(other.depth, other.arm, other.n_kept, other.is_rescued);
  }
};

Json to_json(const Cell& cell) {
  const Counts& counts = cell.counts;
  Json positions = Json::array();
  for (const auto& [position, n] : counts.by_position) {
    positions.push_back({{"position", position}, {"n", n.first}, {"n_right", n.second}});
  }
  return {{"depth", cell.depth},
          {"arm", cell.arm},
          {"n_kept", cell.n_kept},
          {"is_rescued", cell.is_rescued},
          {"n", counts.n},
          {"n_right", counts.n_right},
          {"n_found", counts.n_found},
          {"n_recalled", static_cast<double>(counts.n_recalled) / counts.n},
          {"by_position", positions}};
}

class Cells {
 public:
  void add(Cell cell, const Answered& one) {
    auto at = std::ranges::find_if(cells_, [&](const Cell& other) { return cell.is_of(other); });
    if (at == cells_.end()) at = cells_.insert(at, std::move(cell));
    at->counts.add(one);
  }
  [[nodiscard]] Json as_json() const {
    Json all = Json::array();
    for (const Cell& cell : cells_) all.push_back(to_json(cell));
    return all;
  }

 private:
  std::vector<Cell> cells_;  // in the order of their first answers
};

// A depth's cells, for tables and pictures.
class Depth {
 public:
  Depth(const Json& report, int depth) : depth_(depth) {
    for (const Json& cell : report.at("cells")) {
      if (cell.at("depth") != depth) continue;
      cells_.push_back(cell);
      const auto name = cell.at("arm").get<std::string>();
      if (!std::ranges::contains(arms_, name)) arms_.push_back(name);
      const int n_kept = cell.at("n_kept");
      if (n_kept != 0) kept_.insert(n_kept);
    }
  }

  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] const std::vector<std::string>& arms() const { return arms_; }
  [[nodiscard]] const std::set<int>& kept() const { return kept_; }
  [[nodiscard]] const std::vector<Json>& cells() const { return cells_; }
  [[nodiscard]] int n_asked() const { return cells_.front().at("n"); }
  [[nodiscard]] const Json* find(std::string_view arm, int n_kept, bool is_rescued) const {
    const auto at = std::ranges::find_if(cells_, [&](const Json& cell) {
      return cell.at("arm") == arm && cell.at("is_rescued") == is_rescued &&
             (cell.at("n_kept") == n_kept || cell.at("n_kept") == 0);
    });
    return at == cells_.end() ? nullptr : &*at;
  }

 private:
  int depth_;
  std::vector<Json> cells_;
  std::vector<std::string> arms_;
  std::set<int> kept_;
};

std::vector<Depth> depths_of(const Json& report) {
  std::set<int> numbers;
  for (const Json& cell : report.at("cells")) numbers.insert(cell.at("depth").get<int>());
  std::vector<Depth> depths;
  for (const int depth : numbers) depths.emplace_back(report, depth);
  return depths;
}

std::string percent(int part, int whole) { return format_text("{:.3g} %", 100.0 * part / whole); }

std::string right_of(const Json* cell) {
  return cell == nullptr ? "-" : format_text("{}", cell->at("n_right").get<int>());
}

std::string table_of(const Depth& depth) {
  bench::TextTable::Row head = {"arm"};
  for (const int n_kept : depth.kept()) {
    head.push_back(format_text("{} kept, {}", n_kept, percent(n_kept, depth.depth())));
  }
  for (const int n_kept : depth.kept()) head.push_back(format_text("{} and rescue", n_kept));
  bench::TextTable table(head);
  for (const std::string& arm : depth.arms()) {
    bench::TextTable::Row row = {arm};
    for (const bool is_rescued : {false, true}) {
      for (const int n_kept : depth.kept()) {
        row.push_back(right_of(depth.find(arm, n_kept, is_rescued)));
      }
    }
    table.add(row);
  }
  return table.markdown();
}

// Where the names stand that are found at the smallest budget.
std::string position_table_of(const Depth& depth) {
  const int n_kept = *depth.kept().begin();
  std::optional<bench::TextTable> table;
  for (const std::string& arm : depth.arms()) {
    const Json* cell = depth.find(arm, n_kept, false);
    if (cell == nullptr) continue;
    bench::TextTable::Row head = {format_text("{} kept, no rescue: right of {}, by position",
                                              n_kept, cell->at("by_position")[0].at("n").dump())};
    bench::TextTable::Row row = {arm};
    for (const Json& one : cell->at("by_position")) {
      head.push_back(format_text("{:.0f} %", 100 * one.at("position").get<double>()));
      row.push_back(one.at("n_right").dump());
    }
    if (!table) table.emplace(head);
    table->add(row);
  }
  return table ? table->markdown() : "";
}

std::string recall_of(const Depth& depth) {
  double n = 0;
  double n_found = 0;
  double n_recalled = 0;
  for (const Json& cell : depth.cells()) {
    if (!cell.at("is_rescued").get<bool>() || cell.at("arm") == "leave") continue;
    n += cell.at("n").get<double>();
    n_found += cell.at("n_found").get<double>();
    n_recalled += cell.at("n").get<double>() * cell.at("n_recalled").get<double>();
  }
  if (n == 0) return {};
  return format_text(
      "What came back had the name for {:.1f} % of the questions, and {:.0f} tokens in the mean.\n",
      100 * n_found / n, n_recalled / n);
}

// The arms that people compare, each in its own colour.
bench::Picture picture_of(const Depth& depth) {
  struct Shown {
    std::string_view arm;
    bool is_rescued;
    std::string_view name;
  };
  constexpr std::array<Shown, 8> kShown = {{{"turbo4,attend", false, "attend"},
                                            {"leave", true, "leave, rescue"},
                                            {"tri, by head", false, "tri, by head"},
                                            {"tri", false, "tri"},
                                            {"window, by head", false, "window, by head"},
                                            {"mass, by head", false, "mass, by head"},
                                            {"random", false, "random"},
                                            {"recency", false, "recency"}}};
  bench::Chart chart{.title = format_text("Needles found, {} tokens of text", depth.depth()),
                     .x_name = "tokens kept, or read",
                     .y_name = "right answers, %",
                     .x_labels = {},
                     .series = {}};
  for (const int n_kept : depth.kept()) chart.x_labels.push_back(format_text("{}", n_kept));
  for (std::size_t i = 0; i < kShown.size(); ++i) {
    bench::Series series{
        .name = std::string(kShown[i].name), .colour = bench::colour_at(i), .points = {}};
    double x = 0;
    for (const int n_kept : depth.kept()) {
      const Json* cell = depth.find(kShown[i].arm, n_kept, kShown[i].is_rescued);
      if (cell != nullptr) {
        series.points.push_back(
            {.x = x,
             .y = std::round(100.0 * cell->at("n_right").get<int>() / cell->at("n").get<int>())});
      }
      ++x;
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return {.file = format_text("evictions-{}.svg", depth.depth()),
          .title = chart.title,
          .svg = bench::as_file(bench::bar_chart(chart))};
}

}  // namespace

Json make_report(std::span<const Answered> answered, std::span<const SchemeAnswers> schemes,
                 const TrialOptions& options) {
  Cells cells;
  for (const SchemeAnswers& scheme : schemes) {
    const bool has_limit = scheme.n_attended != 0;
    for (const quality::NeedleAnswer& one : scheme.answers) {
      if (scheme.n_attended >= one.depth) continue;
      const Cell cell{.depth = one.depth,
                      .arm = has_limit ? "turbo4,attend" : scheme.kv + ", all kept",
                      .n_kept = scheme.n_attended,
                      .is_rescued = false};
      cells.add(cell, {.position = one.position, .is_right = one.right});
    }
  }
  for (const Answered& one : answered) {
    cells.add({.depth = one.depth,
               .arm = one.arm.name(),
               .n_kept = one.n_kept,
               .is_rescued = one.is_rescued},
              one);
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {{"format", "slipstream-evictions"},
          {"version", 1},
          {"created", format_text("{:%FT%TZ}", now)},
          {"model", std::filesystem::path(options.model).filename().string()},
          {"llama_cpp", llama_version()},
          {"text", options.text.empty() ? "built in"
                                        : std::filesystem::path(options.text).filename().string()},
          {"n_texts", options.n_texts},
          {"cells", cells.as_json()}};
}

std::string report_as_markdown(const Json& report) {
  const auto said = [&](const char* name) { return report.at(name).get<std::string>(); };
  std::string text = format_text(
      "# What eviction keeps\n\n{}, text: {}, {} texts at each depth; llama.cpp {}; {}\n",
      said("model"), said("text"), report.at("n_texts").get<int>(), said("llama_cpp"),
      said("created"));
  for (const Depth& depth : depths_of(report)) {
    const int n = depth.n_asked();
    text += format_text(
        "\n## {} tokens: right answers of {}, standard error at most {:.1f}\n\n{}\n{}\n{}\n"
        "![Needles found](evictions-{}.svg)\n",
        depth.depth(), n, std::sqrt(n) / 2, table_of(depth), recall_of(depth),
        position_table_of(depth), depth.depth());
  }
  return text;
}

std::vector<bench::Picture> report_pictures(const Json& report) {
  std::vector<bench::Picture> pictures;
  for (const Depth& depth : depths_of(report)) pictures.push_back(picture_of(depth));
  return pictures;
}

Result<void> write_report(const Json& report, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto write = [&](const std::string& name, const std::string& text) {
    return static_cast<bool>(std::ofstream(folder / name) << text << std::flush);
  };
  bool is_written = write("evictions.json", report.dump(1) + "\n") &&
                    write("evictions.md", report_as_markdown(report));
  for (const bench::Picture& picture : report_pictures(report)) {
    is_written = is_written && write(picture.file, picture.svg);
  }
  if (is_written) return {};
  return fail(Code::kIo, format_text("cannot write to {}", folder.string()));
}

}  // namespace slipstream::evictions
