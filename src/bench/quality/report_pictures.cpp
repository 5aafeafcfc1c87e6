// What people look at first: divergence against size, and needles by depth.
#include <map>
#include <utility>

#include "base/format.h"
#include "bench/quality/report.h"
#include "bench/report/quality_chart.h"

namespace slipstream::quality {
namespace {

// A series' colour is its scheme's place in the report, as everywhere.
int colour_at(std::size_t place) { return static_cast<int>(place % 8); }

bench::Picture draw_divergence(const Json& schemes) {
  std::vector<bench::QualityPoint> points;
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    const Json& scheme = schemes[i];
    if (scheme["divergence"].is_null() || scheme["divergence"].empty()) continue;
    const Json& deepest = scheme["divergence"].back()["divergence"];
    if (deepest.is_null()) continue;  // f16
    points.push_back({.kv = scheme["kv"],
                      .bits = scheme["bits_per_value"],
                      .kl_divergence = deepest["kl_mean"],
                      .same_top1 = deepest["same_top"],
                      .colour = colour_at(i)});
  }
  const bench::Chart chart = bench::quality_chart(points);
  return {.file = "divergence.svg", .title = chart.title, .svg = bench::scatter_chart(chart)};
}

bench::Picture draw_needles(const Json& schemes) {
  using Counts = std::pair<int, int>;  // right, asked
  bench::Chart chart{.title = "Needles found",
                     .x_name = "depth: tokens of the text",
                     .y_name = "right answers, %",
                     .x_labels = {},
                     .series = {}};
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    if (schemes[i]["needles"].is_null()) continue;
    std::map<int, Counts> by_depth;
    for (const Json& cell : schemes[i]["needles"]["grid"]) {
      Counts& counts = by_depth[cell["depth"].get<int>()];
      counts.first += cell["n_right"].get<int>();
      counts.second += cell["n"].get<int>();
    }
    bench::Series series{.name = schemes[i]["kv"], .colour = colour_at(i), .points = {}};
    chart.x_labels.clear();
    for (const auto& [depth, counts] : by_depth) {
      series.points.push_back({.x = static_cast<double>(chart.x_labels.size()),
                               .y = 100.0 * counts.first / counts.second});
      chart.x_labels.push_back(format_text("{}", depth));
    }
    chart.series.push_back(std::move(series));
  }
  return {.file = "needles.svg", .title = chart.title, .svg = bench::bar_chart(chart)};
}

}  // namespace

std::vector<bench::Picture> report_pictures(const Json& report) {
  std::vector<bench::Picture> pictures;
  for (const auto draw : {draw_divergence, draw_needles}) {
    bench::Picture picture = draw(report["schemes"]);
    if (picture.svg.empty()) continue;
    picture.svg = bench::as_file(std::move(picture.svg));
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace slipstream::quality
