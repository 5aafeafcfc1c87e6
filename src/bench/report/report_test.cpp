#include <gtest/gtest.h>

#include <cstdlib>

#include "base/format.h"
#include "bench/report/chart.h"
#include "bench/report/findings.h"
#include "bench/report/speed_report.h"
#include "bench/report/speed_table.h"

namespace slipstream::bench {
namespace {

CellSummary cell(const char* kv, double decode, const Ratio& ratio) {
  CellSummary summary;
  summary.cell = {.kv = kv, .depth = 8192, .n_sequences = 1};
  summary.n_repeats = 3;
  summary.decode = summary.prefill = {.median = decode, .min = decode, .max = decode};
  summary.decode_ratio = summary.prefill_ratio = ratio;
  summary.cpu_share_min = 1;
  summary.kv_bytes = 1 << 20;
  return summary;
}

SpeedReport report() {
  return {
      .header = {.work = {{"model", "<b>.gguf"}, {"threads", 1}}, .machine = {{"cpu", "a CPU"}}},
      .matrix = {.kv = {"f16", "q4_0", "turbo4"}, .depths = {8192}, .n_sequences = {1}},
      .cells = {cell("f16", 2, {.value = 1, .verdict = Verdict::kBaseline}),
                cell("q4_0", 1, {.value = 0.5, .verdict = Verdict::kSlower}),
                cell("turbo4", 8, {.value = 4, .verdict = Verdict::kFaster})},
      .quality = {{.kv = "turbo4", .bits = 4.125, .kl_divergence = 0.0087, .same_top1 = 0.94}}};
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(Report, RatiosShowLossesAndDoubt) {
  EXPECT_EQ(ratio_text({.value = 2.314, .verdict = Verdict::kFaster}), "2.31x");
  EXPECT_EQ(ratio_text({.value = 0.8, .verdict = Verdict::kSlower}), "0.80x LOSS");
  EXPECT_EQ(ratio_text({.value = 1.1, .verdict = Verdict::kSame}), "1.10x ~");
  EXPECT_EQ(ratio_text({.value = 1, .verdict = Verdict::kBaseline}), "");
}

TEST(Report, DepthsReadAsTheyAreGiven) {
  EXPECT_EQ(depth_text(0), "0");
  EXPECT_EQ(depth_text(512), "512");
  EXPECT_EQ(depth_text(8192), "8k");
  EXPECT_EQ(depth_text(1536), "1.5k");
}

TEST(Report, FactsReadAsAPersonWritesThem) {
  SpeedReport facts = report();
  facts.header.machine = {{"instruction sets", {"avx2", "f16c"}}, {"load average", 1.02392578125}};
  EXPECT_NE(markdown_report(facts).find("- instruction sets: avx2, f16c\n"), std::string::npos);
  EXPECT_NE(markdown_report(facts).find("- load average: 1.02\n"), std::string::npos);
}

TEST(Report, NamesGainsAndLossesAlike) {
  ASSERT_EQ(gains(report()).size(), 1U);
  EXPECT_EQ(gains(report())[0],
            "turbo4 decodes up to 4.0 times as fast as stock's best f16 (depth 8k, 1 sequence).");
  ASSERT_EQ(losses(report()).size(), 1U);
  EXPECT_NE(losses(report())[0].find("q4_0 is slower than stock's best f16 in 2 of 2 figures"),
            std::string::npos);
}

TEST(Report, SaysWhatStocksDefaultIsBesideItsBest) {
  SpeedReport both = report();
  both.matrix.kv.insert(both.matrix.kv.begin() + 1, "f16 -fa off");
  both.cells.insert(both.cells.begin() + 1,
                    cell("f16 -fa off", 5, {.value = 1, .verdict = Verdict::kBaseline}));
  both.cells[0].decode_ratio = {.value = 0.4, .verdict = Verdict::kSlower};
  both.cells[1].decode_to_default = 2.5;
  both.cells[3].decode_to_default = 10;
  ASSERT_EQ(gains(both).size(), 1U);
  EXPECT_EQ(gains(both)[0],
            "turbo4 decodes up to 4.0 times as fast as stock's best f16, 10.0 times as fast as its "
            "default (depth 8k, 1 sequence).");
  ASSERT_EQ(losses(both).size(), 1U) << "stock is not compared with itself";
  EXPECT_TRUE(markdown_report(both).contains(
      "Another than the default decodes faster in 1 of 1 cells, up to 2.5 times, and reads prompts "
      "faster in 0."));
  EXPECT_TRUE(pictures(both)[0].svg.contains(">f16, best setting</text>"));
  EXPECT_FALSE(pictures(both)[0].svg.contains("-fa off"));
  EXPECT_TRUE(terminal_table(both.cells).contains("10.00x"));
  EXPECT_TRUE(html_report(both).contains("<td>10.00x</td>"));
}

TEST(Report, SaysHowLongMeasuringTook) {
  SpeedReport timed = report();
  timed.seconds = 6470;
  EXPECT_NE(markdown_report(timed).find("Measuring took 108 minutes."), std::string::npos);
}

TEST(Report, WhatFailedIsALoss) {
  SpeedReport broken = report();
  broken.cells[2].n_repeats = 0;
  broken.cells[2].error = "out of memory";
  EXPECT_EQ(losses(broken).size(), 2U);
  EXPECT_NE(terminal_table(broken.cells).find("out of memory"), std::string::npos);
  EXPECT_NE(html_report(broken).find("out of memory"), std::string::npos);
}

TEST(Report, HtmlStandsAloneAndIsEscaped) {
  const std::string html = html_report(report());
  EXPECT_EQ(html.find("<b>.gguf"), std::string::npos);
  EXPECT_NE(html.find("&lt;b&gt;.gguf"), std::string::npos);
  for (const char* outside : {"http://", "https://", "<script", "<link", "src="}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  EXPECT_EQ(count(html, "<svg"), count(html, "</svg>"));
  EXPECT_EQ(count(html, "<tr"), 4U);  // a heading and three cells
}

TEST(Report, PicturesAreFilesThatMarkdownShows) {
  const std::string markdown = markdown_report(report());
  const std::vector<Picture> drawn = pictures(report());
  ASSERT_EQ(drawn.size(), 4U) << "decode, prompt, memory, quality";
  for (const Picture& picture : drawn) {
    EXPECT_TRUE(markdown.contains(format_text("![{}]({})", picture.title, picture.file)));
    EXPECT_TRUE(picture.svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox"));
    EXPECT_TRUE(picture.svg.contains("<style>")) << "a file has no page's style";
  }
}

TEST(Report, CsvHasARowPerCellOfOneWidth) {
  const std::string csv = csv_table(report().cells);
  EXPECT_EQ(count(csv, "\n"), 4U);
  EXPECT_EQ(count(csv, ","), 4U * count(csv.substr(0, csv.find('\n')), ","));
}

TEST(Chart, LinesGoThroughTheirPoints) {
  const std::string svg = line_chart(
      {.title = "t",
       .x_name = "x",
       .y_name = "y",
       .x_labels = {"0", "1k"},
       .series = {{.name = "a", .colour = 1, .points = {{.x = 0, .y = 10}, {.x = 1, .y = 5}}}}});
  // Twice the value must be twice as far from the axis at the bottom.
  const auto y_of = [&](std::size_t n) {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= n; ++i) at = svg.find("cy=\"", at) + 4;
    return std::strtod(svg.c_str() + at, nullptr);
  };
  const std::size_t axis = svg.find("class=\"grid\"");
  const double bottom = std::strtod(svg.c_str() + svg.find("y1=\"", axis) + 4, nullptr);
  EXPECT_NEAR(bottom - y_of(0), 2 * (bottom - y_of(1)), 0.2);
}

TEST(Chart, LinesOverSeveralPowersOfTenHaveALogarithmicScale) {
  const auto grid_of = [](double lowest) {
    const std::string svg = line_chart(
        {.title = "t",
         .x_name = "x",
         .y_name = "y",
         .x_labels = {"0", "1k"},
         .series = {{.name = "a", .points = {{.x = 0, .y = 70}, {.x = 1, .y = lowest}}}}});
    std::string labels;
    for (std::size_t at = svg.find("text-anchor=\"end\">"); at != std::string::npos;
         at = svg.find("text-anchor=\"end\">", at + 1)) {
      labels += svg.substr(at + 18, svg.find('<', at) - at - 18) + " ";
    }
    return labels;
  };
  EXPECT_EQ(grid_of(0.4), "0.1 1 10 100 ");
  EXPECT_TRUE(grid_of(7).starts_with("0 ")) << grid_of(7);
}

TEST(Chart, NamesOfNeighboursAreNotOnTopOfEachOther) {
  const auto name_y = [](const std::string& svg, std::string_view name) {
    const std::size_t end = svg.find(std::string(">") + std::string(name) + "</text>");
    return std::strtod(svg.c_str() + svg.rfind(" y=\"", end) + 4, nullptr);
  };
  const std::string svg = scatter_chart(
      {.title = "t",
       .x_name = "x",
       .y_name = "y",
       .x_labels = {},
       .series = {{.name = "first", .colour = 1, .points = {{.x = 4, .y = 0.01}}},
                  {.name = "second", .colour = 2, .points = {{.x = 4.1, .y = 0.011}}}}});
  EXPECT_GT(std::abs(name_y(svg, "first") - name_y(svg, "second")), 10) << svg;
}

TEST(Chart, NothingToDrawIsNothing) {
  EXPECT_EQ(line_chart({}), "");
  EXPECT_EQ(bar_chart({}), "");
  EXPECT_EQ(scatter_chart({}), "");
}

}  // namespace
}  // namespace slipstream::bench
