// The pictures that people look at first: divergence against size, and needles by depth.
#include <map>
#include <utility>

#include "base/format.h"
#include "bench/quality/report.h"

namespace slipstream::quality {
namespace {

bench::Picture draw_divergence(const Json& report) {
  const bench::Chart chart = bench::quality_chart(quality_points(report));
  return {.file = "divergence.svg", .title = chart.title, .svg = bench::scatter_chart(chart)};
}

bench::Picture draw_needles(const Json& report) {
  const Json& schemes = report["schemes"];
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
    bench::Series series{.name = schemes[i]["kv"], .colour = bench::colour_at(i), .points = {}};
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

std::vector<bench::QualityPoint> quality_points(const Json& report) {
  std::vector<bench::QualityPoint> points;
  const Json& schemes = report.at("schemes");
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    const Json& scheme = schemes.at(i);
    if (scheme.at("divergence").empty() || scheme.at("kv") == "f16") continue;
    const Json& deepest = scheme.at("divergence").back().at("divergence");
    points.push_back({.kv = scheme.at("kv").get<std::string>(),
                      .bits = scheme.at("bits_per_value").get<double>(),
                      .kl_divergence = deepest.at("kl_mean").get<double>(),
                      .same_top1 = deepest.at("same_top").get<double>(),
                      .colour = bench::colour_at(i)});
  }
  return points;
}

std::vector<bench::Picture> report_pictures(const Json& report) {
  std::vector<bench::Picture> pictures;
  for (const auto draw : {draw_divergence, draw_needles}) {
    bench::Picture picture = draw(report);
    if (picture.svg.empty()) continue;
    picture.svg = bench::as_file(std::move(picture.svg));
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace slipstream::quality
