#include "engine/embedding/embedding_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/embedding/text_reader.h"
#include "engine/embedding/unit_vector.h"
#include "engine/model/model.h"

namespace slipstream {
namespace {

// A decoder: its vectors are the means over its tokens.
std::unique_ptr<EmbeddingModel> needle_embedder(int n_tokens_max = 512) {
  Result<std::unique_ptr<EmbeddingModel>> model =
      EmbeddingModel::load({.path = NEEDLE_MODEL, .n_threads = 1, .n_tokens_max = n_tokens_max});
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double dot = 0;
  for (std::size_t i = 0; i < a.size(); ++i) dot += static_cast<double>(a[i]) * b[i];
  return dot;
}

TEST(EmbeddingModel, TextsOfABatchDoNotSeeEachOther) {
  const auto model = needle_embedder();
  const std::vector<std::string> texts = {"The heron stands in the river.", "a",
                                          "Bread is baked in an oven every morning.", "The heron"};
  const auto together = model->embed(texts);
  ASSERT_TRUE(together) << together.error().message;
  ASSERT_EQ(together->size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = model->embed(std::span(texts).subspan(i, 1));
    ASSERT_TRUE(alone);
    EXPECT_NEAR(cosine((*together)[i], (*together)[i]), 1, 1e-5);
    EXPECT_GT(cosine((*together)[i], alone->front()), 0.9999) << texts[i];
  }
  EXPECT_LT(cosine((*together)[0], (*together)[2]), 0.999);
}

TEST(EmbeddingModel, AgreesWithAReaderBesideAModelThatWrites) {
  const auto model = needle_embedder();
  const auto whole = Model::load(
      {.path = NEEDLE_MODEL, .plugin = {}, .n_cells = 256, .n_threads = 1, .on_progress = {}});
  ASSERT_TRUE(whole) << whole.error().message;
  const auto reader = TextReader::create(whole->model(), 256, 1);
  ASSERT_TRUE(reader);
  const auto vocabulary = Vocabulary::create(whole->model());
  const std::string text = "The heron stands in the river.";
  const std::vector<Token> tokens = *vocabulary->tokenize(text, true, false);
  auto expected = (*reader)->read(std::span(&tokens, 1));
  ASSERT_TRUE(expected);
  scale_to_length_one(expected->front());
  EXPECT_GT(cosine(model->embed(std::span(&text, 1))->front(), expected->front()), 0.9999);
}

TEST(EmbeddingModel, ReadsTheBeginningOfLongTexts) {
  const auto model = needle_embedder(32);
  std::string text = "The heron stands in the river.";
  for (int i = 0; i < 2000; ++i) text += " It waits.";
  const std::vector<std::string> texts = {text, text + " And now it is gone.", "Bread"};
  const auto vectors = model->embed(texts);
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_GT(cosine((*vectors)[0], (*vectors)[1]), 0.99999);
  EXPECT_LT(cosine((*vectors)[0], (*vectors)[2]), 0.999);
}

TEST(EmbeddingModel, AnyBytesAreAText) {
  const auto model = needle_embedder();
  const std::vector<std::string> texts = {"", "\xFF\xFE\x80", std::string(3, '\0'), "heron"};
  const auto vectors = model->embed(texts);
  ASSERT_TRUE(vectors) << vectors.error().message;
  for (const std::vector<float>& vector : *vectors) {
    EXPECT_EQ(std::ssize(vector), model->n_dimensions());
    for (const float value : vector) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(EmbeddingModel, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  const std::string text = "heron";
  const auto vectors = needle_embedder()->embed(std::span(&text, 1), stop.get_token());
  ASSERT_FALSE(vectors);
  EXPECT_EQ(vectors.error().code, Code::kCancelled);
}

TEST(EmbeddingModel, VectorsOfAnotherCutAreNotComparable) {
  EXPECT_NE(needle_embedder(32)->id(), needle_embedder(64)->id());
  EXPECT_EQ(needle_embedder(32)->id(), needle_embedder(32)->id());
}

TEST(EmbeddingModel, SaysWhatIsWrong) {
  const auto absent = EmbeddingModel::load({.path = "/nowhere/model.gguf"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kNotFound);
  const auto no_model = EmbeddingModel::load({.path = "/proc/self/exe"});
  ASSERT_FALSE(no_model);
  EXPECT_EQ(no_model.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace slipstream
