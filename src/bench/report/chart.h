// Charts as SVG text, for a report that stands alone in one file. Hand-written because every
// charting library for C++ brings a window system or a script from somewhere else.
//
// Colours come from chart_style(), by the series' place: classes "series-0" to "series-7".
// Points say their value in a <title>, which browsers show under the mouse.
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
  double y_min = 0;  // the range of the repeats; equal where there is none
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
  std::vector<std::string> x_labels;  // of x = 0, 1, 2, ...
  std::vector<Series> series;
};

// Points joined by lines; x is a place among x_labels.
[[nodiscard]] std::string line_chart(const Chart& chart);
// Bars next to each other at each x; the value above each.
[[nodiscard]] std::string bar_chart(const Chart& chart);
// Points with their series' names beside them; x is a number, y has a logarithmic scale.
[[nodiscard]] std::string scatter_chart(const Chart& chart);

// Of a page with charts in it: light or dark as the reader's.
[[nodiscard]] std::string_view chart_style();
// A chart that is no part of a page but a file: with the style in it.
[[nodiscard]] std::string as_file(std::string svg);

struct Picture {
  std::string file;  // "decode-1.svg"
  std::string title;
  std::string svg;
};

// Of the series at this place of a report: the same in all of its charts and tables.
[[nodiscard]] inline int colour_at(std::size_t place) { return static_cast<int>(place % 8); }

// For text between tags and in attributes.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace slipstream::bench
