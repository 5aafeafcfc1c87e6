#include "bench/report/speed_report.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "bench/report/chart.h"
#include "bench/report/findings.h"
#include "bench/report/speed_table.h"

namespace slipstream::bench {
namespace {

constexpr double kMiB = 1 << 20;

constexpr std::string_view kPageStyle = R"(
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 18px; margin: 40px 0 12px; }
.under { color: var(--soft); margin: 0 0 24px; }
.findings { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 16px; }
.card, figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin: 0; }
.card h2 { margin: 0 0 8px; font-size: 15px; }
.card ul { margin: 0; padding-left: 18px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr));
  gap: 16px; }
svg { width: 100%; height: auto; display: block; font-family: inherit; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 5px 8px; border-bottom: 1px solid var(--line); text-align: right; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
tr.first td { border-top: 2px solid var(--line); }
.better { color: var(--good); font-weight: 600; } .worse { color: var(--bad); font-weight: 600; }
.same { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
)";

int colour_of(const SpeedReport& report, std::string_view kv) {
  const auto at = std::ranges::find(report.matrix.kv, kv);
  return colour_at(static_cast<std::size_t>(at - report.matrix.kv.begin()));
}

// The highest of the values at each x.
Series best_series(const std::vector<Series>& settings) {
  Series best;
  for (const Series& series : settings) {
    for (const Point& point : series.points) {
      const auto there = std::ranges::find(best.points, point.x, &Point::x);
      if (there == best.points.end()) {
        best.points.push_back(point);
      } else if (there->y < point.y) {
        *there = point;
      }
    }
  }
  std::ranges::sort(best.points, {}, &Point::x);
  return best;
}

// One series per scheme; at each x, the cell that `find` names. Of stock's settings of the first
// scheme only the default and the best are drawn.
std::vector<Series> series_of(const SpeedReport& report, std::size_t n_places,
                              const std::function<Cell(const std::string&, std::size_t)>& find,
                              const std::function<Point(const CellSummary&)>& value,
                              bool is_speed = true) {
  std::vector<Series> all;
  std::vector<Series> settings;
  const std::string& stock = report.matrix.kv.front();
  for (const std::string& kv : report.matrix.kv) {
    Series series{.name = kv, .colour = colour_of(report, kv), .points = {}};
    for (std::size_t i = 0; i < n_places; ++i) {
      const auto cell = std::ranges::find(report.cells, find(kv, i), &CellSummary::cell);
      if (cell == report.cells.end() || cell->n_repeats == 0) continue;
      Point point = value(*cell);
      point.x = static_cast<double>(i);
      series.points.push_back(point);
    }
    if (is_setting_of(kv, stock)) settings.push_back(series);
    if (kv == stock || !is_setting_of(kv, stock)) all.push_back(std::move(series));
  }
  // What is no speed has no best setting, and is alike in all.
  if (settings.size() < 2 || !is_speed) return all;
  Series best = best_series(settings);
  best.name = format_text("{}, best setting", stock);
  best.colour = settings[1].colour;
  all.insert(all.begin() + 1, std::move(best));
  return all;
}

Point of_spread(const Spread& spread) {
  return {.y = spread.median, .y_min = spread.min, .y_max = spread.max};
}
Point decode_of(const CellSummary& cell) { return of_spread(cell.decode); }
Point prefill_of(const CellSummary& cell) { return of_spread(cell.prefill); }
Point cache_of(const CellSummary& cell) { return {.y = cell.kv_bytes / kMiB}; }

// The charts as parts of a page.
std::vector<Picture> draw_charts(const SpeedReport& report) {
  const Matrix& matrix = report.matrix;
  std::vector<std::string> depths;
  for (const int depth : matrix.depths) depths.push_back(depth_text(depth));
  std::vector<std::string> sequences;
  for (const int n : matrix.n_sequences) sequences.push_back(format_text("{}", n));
  const int deepest = std::ranges::max(matrix.depths);
  const int most = std::ranges::max(matrix.n_sequences);
  const int fewest = std::ranges::min(matrix.n_sequences);
  const auto at_depth = [&](int n_sequences) {
    return [&matrix, n_sequences](const std::string& kv, std::size_t i) {
      return Cell{.kv = kv, .depth = matrix.depths[i], .n_sequences = n_sequences};
    };
  };
  const auto at_sequences = [&](const std::string& kv, std::size_t i) {
    return Cell{.kv = kv, .depth = deepest, .n_sequences = matrix.n_sequences[i]};
  };

  std::vector<Picture> drawn;
  const auto add = [&](std::string_view name, const Chart& chart, auto draw) {
    std::string svg = draw(chart);
    if (svg.empty()) return;
    drawn.push_back(
        {.file = format_text("{}.svg", name), .title = chart.title, .svg = std::move(svg)});
  };
  const auto by_depth = [&](std::string_view name, std::string_view what, int n_sequences,
                            const auto& value) {
    add(format_text("{}-{}", name, n_sequences),
        {.title = format_text("{}, {} sequence{}", what, n_sequences, n_sequences == 1 ? "" : "s"),
         .x_name = "depth: tokens already in the cache",
         .y_name = "tokens per second",
         .x_labels = depths,
         .series = series_of(report, depths.size(), at_depth(n_sequences), value)},
        line_chart);
  };
  by_depth("decode", "Decode", fewest, decode_of);
  if (most != fewest) by_depth("decode", "Decode, all together", most, decode_of);
  by_depth("prompt", "Prompt", fewest, prefill_of);
  if (matrix.n_sequences.size() > 1) {
    add("together",
        {.title = format_text("Decode together at depth {}", depth_text(deepest)),
         .x_name = "sequences",
         .y_name = "tokens per second, all sequences",
         .x_labels = sequences,
         .series = series_of(report, sequences.size(), at_sequences, decode_of)},
        bar_chart);
  }
  const std::string last =
      format_text("depth {}, {} sequence{}", depth_text(deepest), most, most == 1 ? "" : "s");
  add("memory",
      {.title = "KV cache",
       .x_name = last,
       .y_name = "MiB",
       .x_labels = {""},
       .series = series_of(
           report, 1,
           [&](const std::string& kv, std::size_t) {
             return Cell{.kv = kv, .depth = deepest, .n_sequences = most};
           },
           cache_of, /*is_speed=*/false)},
      bar_chart);
  std::vector<QualityPoint> quality = report.quality;
  for (QualityPoint& point : quality) point.colour = colour_of(report, point.kv);
  add("quality", quality_chart(quality), scatter_chart);
  return drawn;
}

std::string charts(const SpeedReport& report) {
  std::string html = "<div class=\"charts\">\n";
  for (const Picture& chart : draw_charts(report)) {
    html += format_text("<figure>\n{}</figure>\n", chart.svg);
  }
  return html + "</div>\n";
}

std::string ratio_cell(const Ratio& ratio) {
  const std::string_view kind = ratio.verdict == Verdict::kFaster   ? "better"
                                : ratio.verdict == Verdict::kSlower ? "worse"
                                                                    : "same";
  return format_text("<td class=\"{}\">{}</td>", kind, ratio_text(ratio));
}

std::string table(const SpeedReport& report) {
  std::string html =
      "<div class=\"wide\"><table>\n<thead><tr><th>KV</th><th>depth</th><th>sequences</th>"
      "<th>decode tok/s</th><th>min – max</th><th>to stock's best</th><th>to its default</th>"
      "<th>prompt tok/s</th><th>to stock's best</th><th>to its default</th>"
      "<th>step p50 ms</th><th>p99</th><th>depth filled in</th><th>KV MiB</th><th>process MiB</th>"
      "</tr></thead>\n<tbody>\n";
  for (const CellSummary& cell : report.cells) {
    const bool is_first = cell.cell.kv == report.matrix.kv.front();
    html += format_text("<tr{}><td class=\"series-{}\">{}</td><td>{}</td><td>{}</td>",
                        is_first ? " class=\"first\"" : "", colour_of(report, cell.cell.kv),
                        escape_html(cell.cell.kv), depth_text(cell.cell.depth),
                        sequences_text(cell.cell));
    if (cell.n_repeats == 0) {
      html +=
          format_text("<td colspan=\"12\" class=\"worse\">{}</td></tr>\n", escape_html(cell.error));
      continue;
    }
    html += format_text(
        "<td>{:.2f}</td><td>{:.2f} – {:.2f}</td>{}<td>{}</td><td>{:.1f}</td>{}<td>{}</td>",
        cell.decode.median, cell.decode.min, cell.decode.max, ratio_cell(cell.decode_ratio),
        default_text(cell.decode_to_default), cell.prefill.median, ratio_cell(cell.prefill_ratio),
        default_text(cell.prefill_to_default));
    html += format_text(
        "<td>{:.0f}</td><td>{:.0f}</td><td>{}</td><td>{:.1f}</td><td>{:.0f}</td></tr>\n",
        cell.step_ms_p50, cell.step_ms_p99,
        cell.fill_seconds > 0 ? format_text("{:.1f} s", cell.fill_seconds) : "",
        cell.kv_bytes / kMiB, cell.rss_bytes / kMiB);
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string plain(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return format_text("{:.2f}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const nlohmann::json& word : value) text += (text.empty() ? "" : ", ") + plain(word);
  return text;
}

std::string facts(const nlohmann::json& of) {
  std::string html = "<dl>";
  for (const auto& [name, value] : of.items()) {
    html += format_text("<dt>{}</dt><dd>{}</dd>\n", escape_html(name), escape_html(plain(value)));
  }
  return html + "</dl>\n";
}

std::string list(const std::vector<std::string>& sentences, std::string_view none) {
  if (sentences.empty()) return format_text("<p>{}</p>", none);
  std::string html = "<ul>";
  for (const std::string& sentence : sentences) {
    html += format_text("<li>{}</li>\n", escape_html(sentence));
  }
  return html + "</ul>\n";
}

}  // namespace

std::vector<Picture> pictures(const SpeedReport& report) {
  std::vector<Picture> charts = draw_charts(report);
  for (Picture& chart : charts) chart.svg = as_file(std::move(chart.svg));
  return charts;
}

std::string markdown_report(const SpeedReport& report) {
  std::string text = "# Speed by KV scheme\n\n";
  for (const auto& [name, value] : report.header.work.items()) {
    text += format_text("- {}: {}\n", name, plain(value));
  }
  for (const auto& [name, value] : report.header.machine.items()) {
    text += format_text("- {}: {}\n", name, plain(value));
  }
  text += "\n";
  for (const Picture& picture : pictures(report)) {
    text += format_text("![{}]({})\n", picture.title, picture.file);
  }
  text += "\n" + markdown_table(report.cells) + "\n";
  for (const std::string& sentence : gains(report)) text += format_text("- {}\n", sentence);
  for (const std::string& sentence : losses(report)) text += format_text("- LOSS: {}\n", sentence);
  text += "\n";
  for (const std::string& sentence : caveats(report)) text += format_text("{}\n", sentence);
  return text;
}

std::string html_report(const SpeedReport& report) {
  const std::string model = plain(report.header.work.value("model", nlohmann::json("a model")));
  const int n_threads = report.header.work.value("threads", 0);
  std::string html = format_text(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>KV cache benchmark: {0}</title>\n<style>{1}{4}</style>\n</head>\n<body>\n<main>\n"
      "<h1>KV cache benchmark: {0}</h1>\n"
      "<p class=\"under\">{2} on {3} · every ratio against stock llama.cpp in the same "
      "run</p>\n",
      escape_html(model), chart_style(),
      n_threads == 1 ? "One thread" : format_text("{} threads", n_threads),
      escape_html(plain(report.header.machine.value("cpu", nlohmann::json("this machine")))),
      kPageStyle);
  html += format_text(
      "<div class=\"findings\">\n<div class=\"card\"><h2>Gains</h2>{}</div>\n"
      "<div class=\"card\"><h2>Losses</h2>{}</div>\n</div>\n",
      list(gains(report), "None."), list(losses(report), "None beyond the noise."));
  html += "<h2>Charts</h2>\n" + charts(report);
  html += "<h2>All figures</h2>\n" + table(report);
  html += "<h2>How to read this</h2>\n" + list(caveats(report), "");
  html += "<h2>What was measured</h2>\n" + facts(report.header.work);
  html += "<h2>Where</h2>\n" + facts(report.header.machine);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace slipstream::bench
