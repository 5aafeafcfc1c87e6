#include "bench/speed/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace slipstream::bench {
namespace {

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("journal_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::filesystem::path path() const { return directory_ / "runs.jsonl"; }
  [[nodiscard]] static RunHeader header(const char* model) {
    return {.work = {{"model", model}}, .machine = {{"cores", 2}}};
  }
  [[nodiscard]] static TurnRecord record(int repeat, double decode) {
    CellFigures figures;
    figures.decode_tokens_per_s = decode;
    figures.step_ms = {1.5, 2.5};
    figures.cpu_share = 1;
    return {.turn = {.cell = {.kv = "turbo4", .depth = 512, .n_sequences = 2}, .repeat = repeat},
            .figures = figures,
            .error = "",
            .seconds = 21.5};
  }

  std::filesystem::path directory_;
};

TEST_F(JournalTest, GoesOnWhereItEnded) {
  {
    Result<Journal> journal = Journal::open(path(), header("a"));
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->add(record(0, 12.5)));
  }
  const Result<Journal> journal = Journal::open(path(), header("a"));
  ASSERT_TRUE(journal);
  ASSERT_EQ(journal->records().size(), 1U);
  EXPECT_EQ(journal->done().count(record(0, 0).turn), 1U);
  EXPECT_DOUBLE_EQ(journal->records()[0].figures->decode_tokens_per_s, 12.5);
  EXPECT_EQ(journal->records()[0].figures->step_ms, (std::vector{1.5, 2.5}));
  EXPECT_DOUBLE_EQ(journal->records()[0].seconds, 21.5);
}

TEST_F(JournalTest, RefusesOtherWork) {
  ASSERT_TRUE(Journal::open(path(), header("a")));
  const Result<Journal> other = Journal::open(path(), header("b"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalidArgument);
}

TEST_F(JournalTest, AFailureIsTriedAgain) {
  Result<Journal> journal = Journal::open(path(), header("a"));
  ASSERT_TRUE(journal);
  TurnRecord failed = record(0, 0);
  failed.figures.reset();
  failed.error = "out of memory";
  ASSERT_TRUE(journal->add(failed));
  EXPECT_TRUE(journal->done().empty());
}

// A child that crashes may write anything to its standard error.
TEST_F(JournalTest, AnErrorThatIsNoUtf8IsWritten) {
  Result<Journal> journal = Journal::open(path(), header("a"));
  ASSERT_TRUE(journal);
  TurnRecord failed = record(0, 0);
  failed.figures.reset();
  failed.error = "model \xFF.gguf cannot be read";
  ASSERT_TRUE(journal->add(failed));
  const Result<Journal> again = Journal::open(path(), header("a"));
  ASSERT_TRUE(again);
  ASSERT_EQ(again->records().size(), 1U);
  EXPECT_EQ(again->records()[0].error, "model \uFFFD.gguf cannot be read");
}

TEST_F(JournalTest, ATurnWithoutTheMachineIsMeasuredAgainAndTheLastOneCounts) {
  {
    Result<Journal> journal = Journal::open(path(), header("a"));
    ASSERT_TRUE(journal);
    TurnRecord starved = record(0, 1);
    starved.figures->cpu_share = 0.2;
    ASSERT_TRUE(journal->add(starved));
    EXPECT_TRUE(journal->done().empty());
    ASSERT_TRUE(journal->add(record(0, 12.5)));
    EXPECT_EQ(journal->done().size(), 1U);
  }
  const Result<Journal> journal = Journal::open(path(), header("a"));
  ASSERT_TRUE(journal);
  ASSERT_EQ(journal->records().size(), 1U);
  EXPECT_DOUBLE_EQ(journal->records()[0].figures->decode_tokens_per_s, 12.5);
}

TEST_F(JournalTest, ALineCutShortCountsAsNotMeasured) {
  {
    Result<Journal> journal = Journal::open(path(), header("a"));
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->add(record(0, 1)));
    ASSERT_TRUE(journal->add(record(1, 1)));
  }
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 20);
  Result<Journal> journal = Journal::open(path(), header("a"));
  ASSERT_TRUE(journal);
  EXPECT_EQ(journal->done().size(), 1U);
  // The next record must not be appended to the incomplete line.
  ASSERT_TRUE(journal->add(record(1, 2)));
  const Result<Journal> again = Journal::open(path(), header("a"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->done().size(), 2U);
}

}  // namespace
}  // namespace slipstream::bench
