#include "bench/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/format.h"

namespace slipstream::bench {
namespace {

constexpr double kWidth = 620;
constexpr double kHeight = 320;
constexpr double kLeft = 48;
constexpr double kRight = 150;  // room for names
constexpr double kTop = 52;
constexpr double kBottom = 48;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLineHeight = 14;

constexpr std::string_view kChartStyle = R"(
:root { --page: #fbfbfa; --card: #fff; --ink: #1c1f23; --soft: #667; --line: #e4e4e0;
  --c0: #8a8f98; --c1: #b8860b; --c2: #c2571a; --c3: #1f6feb; --c4: #0f9d6b; --c5: #8b46d6;
  --c6: #c93c8a; --c7: #3b7f8f; --good: #0b7f55; --bad: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f25; --ink: #e8e8e6;
  --soft: #9aa0aa; --line: #31353d; --c0: #9aa0aa; --c1: #d9a62e; --c2: #e58048; --c3: #6ea8ff;
  --c4: #3fcf9b; --c5: #b98af2; --c6: #ee7db8; --c7: #6fbccb; --good: #3fcf9b; --bad: #ff7b6b; } }
svg .title { font-size: 15px; font-weight: 600; fill: var(--ink); }
svg .axis, svg .tick { font-size: 11px; fill: var(--soft); }
svg .name { font-size: 12px; font-weight: 600; }
svg .grid { stroke: var(--line); }
svg .line path { fill: none; stroke: currentColor; stroke-width: 2; }
svg .line circle, svg .bar rect { fill: currentColor; }
svg .range { stroke: currentColor; stroke-width: 1.5; opacity: .55; }
svg text.name { fill: currentColor; }
.series-0 { color: var(--c0); } .series-1 { color: var(--c1); } .series-2 { color: var(--c2); }
.series-3 { color: var(--c3); } .series-4 { color: var(--c4); } .series-5 { color: var(--c5); }
.series-6 { color: var(--c6); } .series-7 { color: var(--c7); }
)";

std::string number_text(double value) {
  if (std::abs(value) < 10) return format_text("{:.3g}", value);
  return format_text("{:.0f}", value);
}

// 1, 2 or 5 times a power of ten, chosen so that about five steps reach `max`.
double tick_step(double max) {
  const double rough = max / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// The number of whole steps up to `end`. A step that is short by a rounding error counts.
int n_steps(double end, double step) { return static_cast<int>(end / step + 1e-6); }

struct Scale {
  double min = 0;
  double max = 1;
  bool is_log = false;
  [[nodiscard]] double share(double value) const {
    if (!is_log) return (value - min) / (max - min);
    return (std::log10(value) - std::log10(min)) / (std::log10(max) - std::log10(min));
  }
  [[nodiscard]] double y(double value) const { return kTop + kPlotHeight * (1 - share(value)); }
};

double largest_y(const Chart& chart) {
  double largest = 0;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) largest = std::max({largest, point.y, point.y_max});
  }
  return largest;
}

// 0 if a value is not above 0.
double smallest_y(const Chart& chart) {
  double smallest = std::numeric_limits<double>::max();
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      smallest = std::min(smallest, point.y_max > point.y_min ? point.y_min : point.y);
    }
  }
  return std::max(smallest, 0.0);
}

std::string open_chart(const Chart& chart) {
  return format_text(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "<text class=\"title\" x=\"{}\" y=\"18\">{}</text>\n"
      "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"axis\" x=\"{}\" y=\"34\">{}</text>\n",
      kWidth, kHeight, escape_html(chart.title), kLeft, escape_html(chart.title),
      kLeft + kPlotWidth / 2, kHeight - 8, escape_html(chart.x_name), kLeft,
      escape_html(chart.y_name));
}

std::string horizontal_line(double y, std::string_view label) {
  return format_text(
      "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
      "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
      kLeft, kLeft + kPlotWidth, y, y, kLeft - 6, y + 4, label);
}

std::string linear_grid(const Scale& scale) {
  std::string text;
  const double step = tick_step(scale.max);
  for (int i = 0; i <= n_steps(scale.max, step); ++i) {
    text += horizontal_line(scale.y(i * step), number_text(i * step));
  }
  return text;
}

// Whole powers of ten around the values.
Scale log_scale(double y_min, double y_max) {
  return {.min = std::pow(10, std::floor(std::log10(y_min))),
          .max = std::pow(10, std::ceil(std::log10(y_max) + 1e-9)),
          .is_log = true};
}

std::string log_grid(const Scale& scale) {
  std::string text;
  for (int i = 0; i <= n_steps(std::log10(scale.max / scale.min), 1); ++i) {
    const double value = scale.min * std::pow(10, i);
    text += horizontal_line(scale.y(value), number_text(value));
  }
  return text;
}

std::string x_label(double x, std::string_view label) {
  return format_text(
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x,
      kTop + kPlotHeight + 18, escape_html(label));
}

// Names at the right end of lines, pushed apart if they would overlap.
struct Name {
  double y;
  const Series* series;
};
std::string draw_names(std::vector<Name> names) {
  std::ranges::sort(names, {}, &Name::y);
  double lowest = 0;
  std::string text;
  for (Name& name : names) {
    name.y = std::max(name.y, lowest);
    lowest = name.y + kLineHeight;
    text += format_text("<text class=\"name series-{}\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
                        name.series->colour, kLeft + kPlotWidth + 8, name.y + 4,
                        escape_html(name.series->name));
  }
  return text;
}

Scale linear_scale(const Chart& chart) {
  const double largest = largest_y(chart);
  const double step = tick_step(largest);
  return {.min = 0, .max = std::ceil(largest / step) * step};
}

struct Box {
  double left;
  double top;
  double right;
  double bottom;
  [[nodiscard]] bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Places names beside points, where they cover no other point or name if possible.
class NamesBesidePoints {
 public:
  void add_point(double x, double y) { taken_.push_back({x - 5, y - 5, x + 5, y + 5}); }

  std::string draw(const Series& series, double x, double y) {
    constexpr double kLetter = 7;
    const double width = kLetter * static_cast<double>(series.name.size());
    const std::array<Box, 4> places = {{{x + 8, y - 17, x + 8 + width, y - 5},
                                        {x + 8, y + 5, x + 8 + width, y + 17},
                                        {x - 8 - width, y - 17, x - 8, y - 5},
                                        {x - 8 - width, y + 5, x - 8, y + 17}}};
    const auto* const found = std::ranges::find_if(places, [&](const Box& place) {
      return std::ranges::none_of(taken_, [&](const Box& box) { return box.overlaps(place); });
    });
    const Box& place = found == places.end() ? places.front() : *found;
    taken_.push_back(place);
    const bool is_left = place.right < x;
    return format_text(
        "<text class=\"name series-{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
        series.colour, is_left ? place.right : place.left, place.bottom - 1,
        is_left ? "end" : "start", escape_html(series.name));
  }

 private:
  std::vector<Box> taken_;
};

}  // namespace

std::string_view chart_style() { return kChartStyle; }

std::string as_file(std::string svg) {
  constexpr std::string_view kTag = "<svg";
  svg.insert(svg.find('>') + 1,
             format_text("<style>{}svg {{ font-family: system-ui, sans-serif; }}</style>\n"
                         "<rect width=\"100%\" height=\"100%\" fill=\"var(--card)\"/>",
                         kChartStyle));
  svg.insert(kTag.size(), " xmlns=\"http://www.w3.org/2000/svg\"");
  return svg;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string line_chart(const Chart& chart) {
  if (largest_y(chart) <= 0) return "";
  // On a linear scale, values below a thirtieth of the largest would lie on the axis.
  constexpr double kLogRatio = 30;
  const double smallest = smallest_y(chart);
  const bool is_log = smallest > 0 && largest_y(chart) > kLogRatio * smallest;
  const Scale scale = is_log ? log_scale(smallest, largest_y(chart)) : linear_scale(chart);
  const auto n_places = static_cast<double>(std::max<std::size_t>(chart.x_labels.size(), 2));
  const auto x_of = [&](double place) {
    return kLeft + kPlotWidth * (place + 0.25) / (n_places - 0.5);
  };
  std::string text = open_chart(chart) + (is_log ? log_grid(scale) : linear_grid(scale));
  for (std::size_t i = 0; i < chart.x_labels.size(); ++i) {
    text += x_label(x_of(static_cast<double>(i)), chart.x_labels[i]);
  }
  std::vector<Name> names;
  for (const Series& series : chart.series) {
    std::string path;
    std::string marks;
    for (const Point& point : series.points) {
      const double x = x_of(point.x);
      const double y = scale.y(point.y);
      path += format_text("{}{:.1f},{:.1f} ", path.empty() ? "M" : "L", x, y);
      if (point.y_max > point.y_min) {
        marks += format_text(
            "<line class=\"range\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
            "y2=\"{2:.1f}\"/>",
            x, scale.y(point.y_min), scale.y(point.y_max));
      }
      marks += format_text(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}: {}</title></circle>", x, y,
          escape_html(series.name), number_text(point.y));
    }
    if (series.points.empty()) continue;
    names.push_back({.y = scale.y(series.points.back().y), .series = &series});
    text += format_text("<g class=\"line series-{}\"><path d=\"{}\"/>{}</g>\n", series.colour, path,
                        marks);
  }
  return text + draw_names(std::move(names)) + "</svg>\n";
}

std::string bar_chart(const Chart& chart) {
  if (largest_y(chart) <= 0 || chart.x_labels.empty()) return "";
  const Scale scale = linear_scale(chart);
  const double group = kPlotWidth / static_cast<double>(chart.x_labels.size());
  const double bar = group * 0.84 / static_cast<double>(chart.series.size());
  std::string text = open_chart(chart) + linear_grid(scale);
  for (std::size_t i = 0; i < chart.x_labels.size(); ++i) {
    text += x_label(kLeft + group * (static_cast<double>(i) + 0.5), chart.x_labels[i]);
  }
  std::vector<Name> names;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    names.push_back({.y = kTop + 8 + static_cast<double>(i) * kLineHeight, .series = &series});
    for (const Point& point : series.points) {
      const double x = kLeft + group * (point.x + 0.08) + bar * static_cast<double>(i);
      const double y = scale.y(point.y);
      text += format_text(
          "<g class=\"bar series-{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\" rx=\"2\"><title>{}: {}</title></rect>",
          series.colour, x, y, bar * 0.9, kTop + kPlotHeight - y, escape_html(series.name),
          number_text(point.y));
      constexpr double kRoomForNumber = 20;
      if (bar >= kRoomForNumber) {
        text += format_text(
            "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"middle\">{}</text>",
            x + bar * 0.45, y - 4, number_text(point.y));
      }
      text += "</g>\n";
    }
  }
  return text + draw_names(std::move(names)) + "</svg>\n";
}

std::string scatter_chart(const Chart& chart) {
  double x_max = 0;
  double y_min = std::numeric_limits<double>::max();
  double y_max = 0;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      x_max = std::max(x_max, point.x);
      y_min = std::min(y_min, point.y);
      y_max = std::max(y_max, point.y);
    }
  }
  if (y_max <= 0 || y_min <= 0) return "";
  const Scale scale = log_scale(y_min, y_max);
  const double step = tick_step(x_max);
  const double x_end = std::ceil(x_max / step) * step;
  const auto x_of = [&](double value) { return kLeft + kPlotWidth * value / x_end; };
  std::string text = open_chart(chart) + log_grid(scale);
  for (int i = 0; i <= n_steps(x_end, step); ++i) {
    text += x_label(x_of(i * step), number_text(i * step));
  }
  NamesBesidePoints names;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      names.add_point(x_of(point.x), scale.y(point.y));
      text += format_text(
          "<g class=\"line series-{}\"><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}: "
          "{}</title></circle></g>\n",
          series.colour, x_of(point.x), scale.y(point.y), escape_html(series.name),
          number_text(point.y));
    }
  }
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      text += names.draw(series, x_of(point.x), scale.y(point.y));
    }
  }
  return text + "</svg>\n";
}

}  // namespace slipstream::bench
