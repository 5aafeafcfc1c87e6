#include "bench/speed/matrix.h"

#include <gtest/gtest.h>

#include "bench/speed/cell_json.h"

namespace slipstream::bench {
namespace {

const Matrix kMatrix{
    .kv = {"f16", "q8_0", "turbo4"}, .depths = {0, 1024}, .n_sequences = {1, 8}, .n_repeats = 2};

TEST(Matrix, VisitsEveryCellOncePerRepeat) {
  const std::vector<Turn> turns = plan_turns(kMatrix, {});
  EXPECT_EQ(turns.size(), 3U * 2 * 2 * 2);
  EXPECT_EQ(std::set<Turn>(turns.begin(), turns.end()).size(), turns.size());
}

TEST(Matrix, FinishesADepthBeforeTheNext) {
  const std::vector<Turn> turns = plan_turns(kMatrix, {});
  for (std::size_t i = 1; i < turns.size(); ++i) {
    EXPECT_LE(turns[i - 1].cell.depth, turns[i].cell.depth);
  }
}

TEST(Matrix, BeginsEachRepeatWithAnotherScheme) {
  const std::vector<Turn> turns = plan_turns(kMatrix, {});
  EXPECT_EQ(turns[0].cell.kv, "f16");
  EXPECT_EQ(turns[1].cell.kv, "q8_0");  // schemes next to each other
  EXPECT_EQ(turns[6].repeat, 1);
  EXPECT_EQ(turns[6].cell.kv, "q8_0");
}

TEST(Matrix, LeavesOutWhatIsDone) {
  const std::vector<Turn> all = plan_turns(kMatrix, {});
  const std::vector<Turn> rest = plan_turns(kMatrix, {all[0], all[5]});
  EXPECT_EQ(rest.size(), all.size() - 2);
  EXPECT_EQ(rest[0], all[1]);
}

TEST(Matrix, FillingADepthCosts) {
  const Turn first{.cell = {.kv = "f16", .depth = 8192, .n_sequences = 1}, .repeat = 0};
  const Turn second{.cell = first.cell, .repeat = 1};
  EXPECT_GT(guess_seconds(first, kMatrix, {}), guess_seconds(second, kMatrix, {}));
}

// As measured: 535 s to read 8k tokens, and 40 s for a prompt of 256 tokens and 16
// steps after them.
TEST(Matrix, ItsGuessIsNearWhatWasMeasured) {
  CellTask task;
  task.n_prompt = 256;
  task.n_tokens = 16;
  const Turn first{.cell = {.kv = "f16", .depth = 8192, .n_sequences = 1}, .repeat = 0};
  const Turn second{.cell = first.cell, .repeat = 1};
  const double repeat = guess_seconds(second, kMatrix, task);
  EXPECT_NEAR(repeat, 43, 10);
  EXPECT_NEAR(guess_seconds(first, kMatrix, task) - repeat, 535, 60);
}

TEST(CellTask, ArrivesInItsProcessAsItWas) {
  CellTask task;
  task.rope = {.type = "yarn",
               .freq_base = 1e6F,
               .freq_scale = 0.25F,
               .yarn_orig_ctx = 8192,
               .yarn_ext_factor = 0.1F,
               .yarn_attn_factor = 0.2F,
               .yarn_beta_fast = 16,
               .yarn_beta_slow = 2};
  EXPECT_EQ(nlohmann::json(task).get<CellTask>().rope, task.rope);
}

}  // namespace
}  // namespace slipstream::bench
