// Vectors in an index, and searches with them; the embedder is one of few words.
#include <gmock/gmock.h>

#include <array>
#include <map>

#include "retrieval/dense/chunk_embedder.h"
#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A number for each idea; different words may have one idea.
class IdeaEmbedder : public TextEmbedder {
 public:
  explicit IdeaEmbedder(std::string id = "ideas") : id_(std::move(id)) {}
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] int n_dimensions() const override { return 4; }
  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts,
                                                const std::stop_token& stop) override {
    if (stop.stop_requested()) return fail(Code::kCancelled, "stopped");
    if (fails) return fail(Code::kUnsupported, "the model is broken");
    static const std::map<std::string, std::size_t> kIdeas = {
        {"heron", 0}, {"wader", 0}, {"egret", 0}, {"bread", 1},
        {"loaf", 1},  {"river", 2}, {"stream", 2}};
    std::vector<std::vector<float>> vectors;
    for (const std::string& text : texts) {
      std::vector<float> vector = {0, 0, 0, 0.1F};
      for (const auto& [word, idea] : kIdeas) {
        if (text.contains(word)) vector[idea] = 1;
      }
      float squares = 0;
      for (const float value : vector) squares += value * value;
      for (float& value : vector) value /= std::sqrt(squares);
      vectors.push_back(std::move(vector));
      read.push_back(text);
    }
    return vectors;
  }

  bool fails = false;
  std::vector<std::string> read;

 private:
  std::string id_;
};

// Likes texts with the word "best".
class BestRanker : public TextRanker {
 public:
  Result<std::vector<float>> rank(std::string_view /*query*/,
                                  std::span<const std::string> texts) override {
    if (fails) return fail(Code::kUnsupported, "the model is broken");
    n_read = texts.size();
    std::vector<float> ranks;
    for (const std::string& text : texts) ranks.push_back(text.contains("best") ? 1.0F : -1.0F);
    return ranks;
  }
  bool fails = false;
  std::size_t n_read = 0;
};

class VectorsTest : public IndexTest {
 protected:
  EmbedSummary embed() { return embed_with(embedder_); }
  EmbedSummary embed_with(TextEmbedder& embedder) {
    Result<Database> database = open_index(index_path());
    EXPECT_TRUE(set_embedder(*database, {.id = embedder.id(), .path = "m", .n_dimensions = 4}));
    const Result<EmbedSummary> summary = embed_chunks(*database, embedder, {});
    EXPECT_TRUE(summary) << summary.error().message;
    return summary.value_or(EmbedSummary{});
  }
  SearchAnswer ask(const std::string& query, std::optional<double> meaning = {}) {
    const auto searcher = Searcher::open(
        index_path(), {.vectors = &cache_, .embedder = &embedder_, .ranker = ranker_});
    EXPECT_TRUE(searcher);
    const Result<SearchAnswer> answer = (*searcher)->search({.query = query, .meaning = meaning});
    EXPECT_TRUE(answer) << answer.error().message;
    return answer.value_or(SearchAnswer{});
  }
  static std::vector<std::string> paths_of(const SearchAnswer& answer) {
    std::vector<std::string> paths;
    for (const Found& found : answer.found) paths.push_back(found.path);
    return paths;
  }
  VectorCounts vector_counts() {
    Result<Database> database = open_index(index_path());
    return count_vectors(*database).value_or(VectorCounts{});
  }
  std::int64_t n_rows(const std::string& table) {
    Result<Database> database = open_index(index_path());
    Result<Statement> select = database->prepare("SELECT count(*) FROM " + table);
    EXPECT_TRUE(select->step());
    return select->integer(0);
  }

  IdeaEmbedder embedder_;
  VectorCache cache_;
  TextRanker* ranker_ = nullptr;
};

TEST_F(VectorsTest, FindsWhatIsSaidInOtherWords) {
  write("a.txt", "An egret stands in the stream.");
  write("b.txt", "A loaf lies in the oven.");
  update();
  EXPECT_EQ(embed().n_computed, 2);
  const SearchAnswer answer = ask("where does the wader wait near the river", 1.0);
  ASSERT_FALSE(answer.found.empty());
  EXPECT_EQ(answer.found.front().path, "a.txt");
  EXPECT_GT(answer.found.front().nearness.value_or(0), 0.9);
  // Words alone do not find it.
  EXPECT_THAT(ask("where does the wader wait near the river", 0.0).found, IsEmpty());
}

TEST_F(VectorsTest, AFileThatIsRenamedIsNotReadAgain) {
  write("a.txt", "An egret in the stream.");
  update();
  EXPECT_EQ(embed().n_computed, 1);
  std::filesystem::rename(root() / "a.txt", root() / "b.txt");
  update();
  const EmbedSummary summary = embed();
  EXPECT_EQ(summary.n_chunks, 0);
  EXPECT_THAT(paths_of(ask("wader", 1.0)), ElementsAre("b.txt"));
}

TEST_F(VectorsTest, OnlyPiecesThatChangedAreComputed) {
  std::string text;
  for (int i = 0; i < 120; ++i)
    text += "Line " + std::to_string(i) + " of a text about herons.\n\n";
  for (int i = 0; i < 120; ++i) text += "Line " + std::to_string(i) + " of a text about bread.\n\n";
  write("a.txt", text);
  write("copy.md", "x");
  update();
  const std::int64_t n_all = embed().n_computed;
  ASSERT_GE(n_all, 4);
  write("a.txt", text + "And a loaf at its end.\n");
  update();
  const EmbedSummary summary = embed();
  EXPECT_GT(summary.n_chunks, summary.n_computed);
  EXPECT_LE(summary.n_computed, 2);
}

TEST_F(VectorsTest, WhatIsGoneIsForgotten) {
  write("a.txt", "An egret.");
  update();
  embed();
  EXPECT_EQ(n_rows("vector"), 1);
  {
    Result<Database> database = open_index(index_path());
    const Result<Project> project = find_project(*database, root().string());
    ASSERT_TRUE(remove_project(*database, project->id));
  }
  embed();
  EXPECT_EQ(n_rows("vector"), 0);
  EXPECT_EQ(n_rows("chunk_vector"), 0);
}

TEST_F(VectorsTest, VectorsOfAnotherModelAreNotCompared) {
  write("a.txt", "An egret in the stream.");
  update();
  IdeaEmbedder other("others");
  embed_with(other);
  const SearchAnswer answer = ask("egret in the stream of words and birds");
  EXPECT_TRUE(answer.problem.contains("another model")) << answer.problem;
  EXPECT_THAT(paths_of(answer), ElementsAre("a.txt"));
  EXPECT_FALSE(answer.found.front().nearness);
  // The new model's replace them.
  EXPECT_EQ(embed().n_computed, 1);
  EXPECT_EQ(ask("egret in the stream of words and birds").problem, "");
}

TEST_F(VectorsTest, WordsAreSearchedWhileVectorsAreMissing) {
  write("a.txt", "An egret in the stream.");
  update();
  embed();
  write("b.txt", "Another egret in the stream.");
  update();
  EXPECT_EQ(vector_counts().n_without, 1);
  EXPECT_THAT(paths_of(ask("another egret in the stream of the town")), testing::Contains("b.txt"));
  embed();
  EXPECT_EQ(vector_counts().n_without, 0);
}

TEST_F(VectorsTest, ABrokenEmbedderIsNoBrokenSearch) {
  write("a.txt", "An egret in the stream.");
  update();
  embed();
  embedder_.fails = true;
  const SearchAnswer answer = ask("an egret in the stream of a town");
  EXPECT_EQ(answer.problem, "the model is broken");
  EXPECT_THAT(paths_of(answer), ElementsAre("a.txt"));
}

TEST_F(VectorsTest, DamagedVectorsAreLeftOut) {
  write("a.txt", "An egret in the stream.");
  write("b.txt", "A heron in the river.");
  update();
  embed();
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(database->run("UPDATE vector SET packed = x'00' WHERE id = 1"));
  }
  const SearchAnswer answer = ask("wader", 1.0);
  EXPECT_EQ(answer.found.size(), 1);
}

TEST_F(VectorsTest, ComputingCanBeStoppedAndGoesOn) {
  for (int i = 0; i < 100; ++i)
    write("a" + std::to_string(i) + ".txt", "Heron " + std::to_string(i));
  update();
  std::stop_source stop;
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(set_embedder(*database, {.id = "ideas", .path = "m", .n_dimensions = 4}));
    const auto stopped = embed_chunks(*database, embedder_, stop.get_token(),
                                      [&](std::int64_t, std::int64_t) { stop.request_stop(); });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, Code::kCancelled);
  }
  const std::int64_t n_before = vector_counts().n_with;
  EXPECT_GT(n_before, 0);
  EXPECT_EQ(embed().n_computed, 100 - n_before);
}

TEST_F(VectorsTest, AnIndexOfBeforeGetsItsTables) {
  write("a.txt", "An egret in the stream.");
  update();
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(database->run("DROP TABLE embedder; DROP TABLE vector; DROP TABLE chunk_vector"));
  }
  EXPECT_EQ(embed().n_computed, 1);
}

TEST_F(VectorsTest, TheRerankerOrdersTheFirstFew) {
  for (int i = 0; i < 40; ++i)
    write("a" + std::to_string(i) + ".txt", "heron heron heron " + std::to_string(i));
  write("z.txt", "the best of a heron, among so many other words");
  update();
  BestRanker ranker;
  ranker_ = &ranker;
  SearchAnswer answer = ask("heron best");
  EXPECT_EQ(answer.found.front().path, "z.txt");
  EXPECT_EQ(answer.found.size(), 8);
  EXPECT_EQ(ranker.n_read, 20);
  ranker.fails = true;
  answer = ask("heron best");
  EXPECT_TRUE(answer.problem.contains("the model is broken"));
  EXPECT_FALSE(answer.found.empty());
}

}  // namespace
}  // namespace slipstream
