#include "bench/speed/summary.h"

#include <gtest/gtest.h>

namespace slipstream::bench {
namespace {

const Matrix kSmallMatrix{
    .kv = {"f16", "turbo4"}, .depths = {0}, .n_sequences = {1}, .n_repeats = 3};

TurnRecord measured(const char* kv, int repeat, double decode) {
  CellFigures figures;
  figures.decode_tokens_per_s = decode;
  figures.prefill_tokens_per_s = 10 * decode;
  figures.step_ms = {1000 / decode};
  figures.cpu_share = 1;
  return {.turn = {.cell = {.kv = kv, .depth = 0, .n_sequences = 1}, .repeat = repeat},
          .figures = figures,
          .error = ""};
}

std::vector<CellSummary> compare(std::vector<double> stock, std::vector<double> ours) {
  std::vector<TurnRecord> records;
  for (std::size_t i = 0; i < stock.size(); ++i) {
    records.push_back(measured("f16", static_cast<int>(i), stock[i]));
    records.push_back(measured("turbo4", static_cast<int>(i), ours[i]));
  }
  return summarise(kSmallMatrix, records);
}

TEST(Summary, PercentileLiesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
}

TEST(Summary, ComparesMediansWithTheBaseline) {
  const std::vector<CellSummary> cells = compare({10, 30, 11}, {22, 20, 21});
  EXPECT_DOUBLE_EQ(cells[0].decode.median, 11);
  EXPECT_EQ(cells[0].decode_ratio.verdict, Verdict::kBaseline);
  EXPECT_DOUBLE_EQ(cells[1].decode_ratio.value, 21.0 / 11);
}

TEST(Summary, OverlapIsNoDifference) {
  EXPECT_EQ(compare({10, 30, 11}, {22, 20, 21})[1].decode_ratio.verdict, Verdict::kSame);
  EXPECT_EQ(compare({10, 12, 11}, {22, 20, 21})[1].decode_ratio.verdict, Verdict::kFaster);
  EXPECT_EQ(compare({22, 20, 21}, {10, 12, 11})[1].decode_ratio.verdict, Verdict::kSlower);
}

// Stock counts with its better setting: with flash attention, its default, or without.
TEST(Summary, ComparesWithTheBestOfBothSettings) {
  const Matrix matrix{
      .kv = {"f16", "f16 -fa off", "turbo4"}, .depths = {0}, .n_sequences = {1}, .n_repeats = 1};
  std::vector<TurnRecord> records = {measured("f16", 0, 6.6), measured("f16 -fa off", 0, 16.6),
                                     measured("turbo4", 0, 45)};
  records[0].figures->prefill_tokens_per_s = 55;
  records[1].figures->prefill_tokens_per_s = 38;
  records[2].figures->prefill_tokens_per_s = 409;
  const std::vector<CellSummary> cells = summarise(matrix, records);
  EXPECT_DOUBLE_EQ(cells[2].decode_ratio.value, 45 / 16.6);
  EXPECT_DOUBLE_EQ(cells[2].decode_to_default, 45 / 6.6);
  EXPECT_DOUBLE_EQ(cells[2].prefill_ratio.value, 409.0 / 55);
  EXPECT_DOUBLE_EQ(cells[2].prefill_to_default, 409.0 / 55);
  EXPECT_EQ(cells[0].decode_ratio.verdict, Verdict::kSlower);
  EXPECT_EQ(cells[0].prefill_ratio.verdict, Verdict::kBaseline);
  EXPECT_EQ(cells[1].decode_ratio.verdict, Verdict::kBaseline);
  EXPECT_DOUBLE_EQ(cells[0].decode_to_default, 0) << "it is the default";
}

// For example an older run, or a model that needs flash attention.
TEST(Summary, WithoutTheOtherSettingTheDefaultIsTheBest) {
  const Matrix matrix{
      .kv = {"f16", "f16 -fa off", "turbo4"}, .depths = {0}, .n_sequences = {1}, .n_repeats = 1};
  const std::vector<CellSummary> cells =
      summarise(matrix, std::vector{measured("f16", 0, 10), measured("turbo4", 0, 20)});
  EXPECT_EQ(cells[0].decode_ratio.verdict, Verdict::kBaseline);
  EXPECT_DOUBLE_EQ(cells[2].decode_ratio.value, 2);
}

TEST(Summary, AFailedCellSaysWhy) {
  const std::vector<TurnRecord> records = {
      measured("f16", 0, 10),
      {.turn = {.cell = {.kv = "turbo4", .depth = 0, .n_sequences = 1}, .repeat = 0},
       .figures = {},
       .error = "no room"}};
  const std::vector<CellSummary> cells = summarise(kSmallMatrix, records);
  EXPECT_EQ(cells[1].n_repeats, 0);
  EXPECT_EQ(cells[1].error, "no room");
}

TEST(Summary, AFailureThatWasTriedAgainIsForgotten) {
  std::vector<TurnRecord> records = {
      {.turn = {.cell = {.kv = "f16", .depth = 0, .n_sequences = 1}, .repeat = 0},
       .figures = {},
       .error = "no room"},
      measured("f16", 0, 10)};
  EXPECT_EQ(summarise(kSmallMatrix, records)[0].error, "");
}

}  // namespace
}  // namespace slipstream::bench
