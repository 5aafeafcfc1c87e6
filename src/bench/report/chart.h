// Charts as SVG text, for a report in a single file. Written by hand, because every charting
// library for C++ needs a window system or a script from elsewhere.
//
// Colours come from chart_style(), by the series' index: classes "series-0" to "series-7". Points
// have their value in a <title>, which browsers show under the mouse.
//
// Threads: thread-safe. Errors: none; a chart without points is an empty string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::bench {

struct Point {
  double x = 0;
  double y = 0;
  double y_min = 0;  // the range of the repeats; both equal y if there is none
  double y_max = 0;
};

struct Series {
  std::string name;
  int colour = 0;
  std::vector<Point> points;
};

struct Chart {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<std::string> x_labels;  // labels for x = 0, 1, 2, ...
  std::vector<Series> series;
};

// Points joined by lines; x is an index into x_labels. y has a logarithmic scale if its values differ
// much.
[[nodiscard]] std::string line_chart(const Chart& chart);
// Bars next to each other at each x, with the value above each bar.
[[nodiscard]] std::string bar_chart(const Chart& chart);
// Points with their series' names beside them; x is a number, y has a logarithmic scale.
[[nodiscard]] std::string scatter_chart(const Chart& chart);

// The style of a page with charts: light or dark like the reader's setting.
[[nodiscard]] std::string_view chart_style();
// Turns a chart of a page into a separate file with the style in it.
[[nodiscard]] std::string as_file(std::string svg);

struct Picture {
  std::string file;  // "decode-1.svg"
  std::string title;
  std::string svg;
};

// The colour of the series at this index of a report, the same in all of its charts and tables.
[[nodiscard]] inline int colour_at(std::size_t place) { return static_cast<int>(place % 8); }

// Escapes text between tags and in attributes.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace slipstream::bench
