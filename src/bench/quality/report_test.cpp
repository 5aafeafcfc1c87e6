#include "bench/quality/report.h"

#include <gtest/gtest.h>

namespace slipstream::quality {
namespace {

std::vector<SchemeResult> results() {
  SchemeResult f16{.kv = "f16"};
  f16.found.depths = {512};
  f16.found.divergence = {{.depth = 512, .n_chunks = 2, .perplexity = 20}};
  f16.found.needles = {
      {.kind = "single", .depth = 512, .name = "a b", .answer = "a b", .right = true},
      {.kind = "several", .depth = 512, .name = "c d", .answer = "x"}};
  f16.found.continuations = {{1, 2, 3}, {4, 5, 6}};
  SchemeResult turbo = f16;
  turbo.kv = "turbo4";
  turbo.found.divergence.front().divergence = {.n_tokens = 510, .kl_mean = 0.01, .same_top = 0.95};
  turbo.found.needles[0].answer = "It is a b";
  turbo.found.continuations = {{1, 9, 3}, {4, 5, 6}};
  turbo.judgement = judge(turbo.found.divergence);
  return {f16, turbo, {.kv = "turbo2", .error = "its process died, \"badly\""}};
}

Json report() {
  return make_report(results(), {.model = "/models/m.gguf", .n_drift_tokens = 3},
                     {.created = "now", .slipstream = "1", .llama_cpp = "2", .ggml = "3"});
}

TEST(Report, HasEverySchemeWithItsFigures) {
  const Json json = report();
  EXPECT_EQ(json["model"]["file"], "m.gguf");
  ASSERT_EQ(json["schemes"].size(), 3U);
  EXPECT_TRUE(json["schemes"][0]["divergence"][0]["divergence"].is_null());
  EXPECT_TRUE(json["schemes"][0]["verdict"].is_null());
  const Json& turbo = json["schemes"][1];
  EXPECT_EQ(turbo["verdict"], "fine");
  EXPECT_EQ(turbo["divergence"][0]["divergence"]["kl_mean"], 0.01);
  EXPECT_EQ(turbo["needles"]["n_right"], 1);
  EXPECT_EQ(turbo["needles"]["n_same"], 1);
  EXPECT_EQ(turbo["needles"]["grid"].size(), 2U);
  EXPECT_EQ(turbo["drift"]["first_differences"], Json({1, 3}));
  EXPECT_EQ(turbo["drift"]["median"], 2);
  EXPECT_TRUE(turbo["tool_calls"].is_null());
  EXPECT_EQ(json["schemes"][2]["error"], "its process died, \"badly\"");
}

TEST(Report, TablesSayWhatFailed) {
  for (const std::string& text : {report_for_terminal(report()), report_as_markdown(report())}) {
    EXPECT_TRUE(text.contains("0.010000")) << text;
    EXPECT_TRUE(text.contains("failed")) << text;
    EXPECT_TRUE(text.contains("turbo2: its process died")) << text;
  }
}

TEST(Report, TablesAddUpNeedlesByDepthAndKind) {
  const std::string text = report_as_markdown(report());
  EXPECT_TRUE(
      text.contains("asked, by depth\n\n| KV | 512 |\n|---|---|\n| f16 | 1/2/2 |\n"
                    "| turbo4 | 1/1/2 |\n"))
      << text;
  EXPECT_TRUE(
      text.contains("| KV | single | several |\n|---|---|---|\n| f16 | 1/1/1 | 0/1/1 |\n"
                    "| turbo4 | 1/0/1 | 0/1/1 |\n"))
      << text;
}

TEST(Report, TokensReadOneAtATimeHaveATableOfTheirOwn) {
  EXPECT_FALSE(report_as_markdown(report()).contains("one at a time"));
  EXPECT_TRUE(report()["schemes"][1]["divergence"][0]["decoded"].is_null());
  std::vector<SchemeResult> schemes = results();
  schemes[0].found.depths = {512, 2048};
  DepthFigures& figures = schemes[1].found.divergence.emplace_back();
  figures.depth = 2048;
  for (DepthFigures& one : schemes[1].found.divergence) {
    one.decoded = {.n_tokens = 128, .kl_mean = 2e-5 * one.depth, .same_top = 0.5};
  }
  const Json json = make_report(schemes, {}, {});
  EXPECT_EQ(json["schemes"][1]["divergence"][0]["decoded"]["n_tokens"], 128);
  const std::string text = report_as_markdown(json);
  EXPECT_TRUE(text.contains("| turbo4 | 0.010240 ± 0.000000 | 50.00 ± 0.00 % | 0.040960 ± "))
      << text;
  EXPECT_TRUE(report_as_csv(json).contains("turbo4,decoded_kl_mean,,2048,,0.04096,0.0\n"));
}

TEST(Report, SaysWhetherKeysWereFitted) {
  const auto of = [](const char* keys) {
    return report_as_markdown(make_report(results(), {.key_profile = keys}, {}));
  };
  EXPECT_TRUE(of("").contains(", keys: rotated, "));
  EXPECT_TRUE(of("model.keys").contains(", keys: fitted, "));
}

TEST(Report, PicturesShowWhatWasMeasured) {
  const std::vector<bench::Picture> pictures = report_pictures(report());
  ASSERT_EQ(pictures.size(), 2U);
  EXPECT_EQ(pictures[0].file, "divergence.svg");
  EXPECT_TRUE(pictures[0].svg.contains("<title>turbo4: 0.01</title>")) << pictures[0].svg;
  // f16 is the reference for the others.
  EXPECT_FALSE(pictures[0].svg.contains("f16:")) << pictures[0].svg;
  EXPECT_TRUE(pictures[1].svg.contains("<title>f16: 50</title>")) << pictures[1].svg;
  EXPECT_TRUE(report_as_markdown(report()).contains("](needles.svg)"));

  Json without_needles = report();
  for (Json& scheme : without_needles["schemes"]) scheme["needles"] = nullptr;
  EXPECT_EQ(report_pictures(without_needles).size(), 1U);
}

TEST(Report, WorkBeginsWithF16sScore) {
  std::vector<SchemeResult> schemes = results();
  schemes[0].found.work = {{.kind = "arithmetic", .answer = "7", .valid = true, .right = true},
                           {.kind = "arithmetic", .answer = "8", .valid = true, .right = true},
                           {.kind = "facts", .answer = "it"}};
  schemes[1].found.work = schemes[0].found.work;
  schemes[1].found.work[1] = {.kind = "arithmetic", .answer = "9", .valid = true};
  const Json json = make_report(schemes, {}, {});
  EXPECT_EQ(json["schemes"][1]["work"]["arithmetic"]["n_kept"], 1);
  EXPECT_TRUE(json["schemes"][2]["work"].is_null());  // it failed
  const std::string text = report_as_markdown(json);
  EXPECT_TRUE(text.contains("## Work, arithmetic: f16 answers 2/2 right")) << text;
  EXPECT_TRUE(text.contains("| turbo4 | 1/2 | 1/2 | 1/2 | 2/2 |")) << text;
  EXPECT_TRUE(text.contains("| turbo2 | - | - | - | - |")) << text;
  EXPECT_FALSE(text.contains("nothing right in arithmetic")) << text;
  EXPECT_TRUE(text.contains("f16: it gets nothing right in facts")) << text;
  EXPECT_TRUE(report_as_csv(json).contains("turbo4,work_n_kept,arithmetic,,,1,\n"));
}

TEST(Report, CsvHasSevenFieldsInEveryLine) {
  const std::string csv = report_as_csv(report());
  EXPECT_TRUE(csv.contains("turbo4,kl_mean,,512,,0.01,0.0\n")) << csv;
  EXPECT_TRUE(csv.contains("turbo4,needles_n_same,single,512,0.0,0,\n")) << csv;
  EXPECT_TRUE(csv.contains("turbo2,error,,,,\"its process died, \"\"badly\"\"\",\n")) << csv;
}

}  // namespace
}  // namespace slipstream::quality
