#include "engine/forecast/context_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
constexpr std::int64_t kWhole = 131072;
constexpr const char* kBest = "turbo8v4";
constexpr const char* kMiddle = "turbo4";
constexpr const char* kSmallest = "turbo3";

// 100 MiB of weights, and 4 KiB of f16 cache for each token.
ModelProfile small_model() {
  ModelProfile profile;
  profile.weights.copied = 100 * kMebi;
  ModelGeometry& model = profile.geometry;
  model.architecture = "llama";
  model.n_ctx_train = kWhole;
  model.n_layers = 1;
  model.n_tensors = 12;
  model.n_embd = 1024;
  model.n_vocab = 32000;
  model.ff_in = 2048;
  model.ff_out = 1024;
  model.attention.push_back(
      {.layer = 0, .n_heads = 8, .n_kv_heads = 8, .key_channels = 1024, .value_channels = 1024});
  return profile;
}

std::vector<KvScheme> schemes_named(std::initializer_list<const char*> names) {
  std::vector<KvScheme> schemes;
  for (const char* name : names) schemes.push_back(*parse_kv_scheme(name));
  return schemes;
}

std::uint64_t needed(const char* kv, std::int64_t n_ctx) {
  return needed_bytes(*forecast(small_model(), *parse_kv_scheme(kv), {.n_ctx = n_ctx}));
}

using Choice = std::pair<std::string, std::int64_t>;
Choice choice_within(std::uint64_t n_bytes, std::int64_t n_whole = kWhole) {
  const auto choice = choose_context(small_model(), schemes_named({kBest, kMiddle, kSmallest}),
                                     n_bytes, {.n_ctx = n_whole});
  EXPECT_TRUE(choice) << choice.error().message;
  if (!choice || !*choice) return {"none", 0};
  EXPECT_LE(needed_bytes((*choice)->forecast), n_bytes);
  return {(*choice)->scheme.name(), (*choice)->forecast.n_ctx};
}

TEST(ContextChoice, TakesTheWholeContextWhereItFitsAndNoMore) {
  EXPECT_EQ(choice_within(100'000 * kMebi), Choice(kBest, kWhole));
  EXPECT_EQ(choice_within(needed(kBest, kWhole)), Choice(kBest, kWhole));
  EXPECT_EQ(choice_within(100'000 * kMebi, 1000), Choice(kBest, 1024)) << "as libllama rounds it";
}

TEST(ContextChoice, KeepsTheBestSchemeWhileTheContextIsEnough) {
  EXPECT_EQ(choice_within(needed(kBest, kWhole) - 1), Choice(kBest, kWhole - 4096));
  EXPECT_GT(needed(kBest, kWhole) - 1, needed(kMiddle, kWhole)) << "turbo4 had the whole context";
  EXPECT_EQ(choice_within(needed(kBest, kContextEnough)), Choice(kBest, kContextEnough));
}

TEST(ContextChoice, TakesFewerBitsForAContextThatWouldBeShort) {
  const auto [scheme, n_ctx] = choice_within(needed(kBest, kContextEnough) - 1);
  EXPECT_EQ(scheme, kMiddle);
  EXPECT_GE(n_ctx, kContextEnough);
  EXPECT_EQ(choice_within(needed(kBest, 16384) - 1, 16384), Choice(kMiddle, 16384))
      << "all that a model has is enough";
}

TEST(ContextChoice, TakesWhatFitsWithTheSmallestSchemeIfNothingIsEnough) {
  const auto [scheme, n_ctx] = choice_within(needed(kSmallest, 16384));
  EXPECT_EQ(scheme, kSmallest);
  EXPECT_EQ(n_ctx, 16384);
}

TEST(ContextChoice, GivesNobodyLessThanTheLeast) {
  EXPECT_EQ(choice_within(needed(kSmallest, kContextLeast)), Choice(kSmallest, kContextLeast));
  EXPECT_EQ(choice_within(needed(kSmallest, kContextLeast) - 1).first, "none");
  EXPECT_EQ(choice_within(needed(kSmallest, 2048), 2048), Choice(kSmallest, 2048));
  EXPECT_EQ(choice_within(kMebi).first, "none");
}

TEST(ContextChoice, ASchemeThatWasAskedForIsTheOnlyOne) {
  const auto choice = choose_context(small_model(), schemes_named({"f16"}),
                                     needed("f16", 12288) + kMebi, {.n_ctx = kWhole});
  ASSERT_TRUE(choice && *choice);
  EXPECT_EQ((*choice)->scheme.name(), "f16");
  EXPECT_EQ((*choice)->forecast.n_ctx, 12288);
}

TEST(ContextChoice, RefusesASchemeThatLibllamaRefuses) {
  ModelProfile odd = small_model();
  odd.geometry.attention[0].n_kv_heads = 16 * 3;  // heads that blocks of 32 do not divide
  odd.geometry.attention[0].key_channels = odd.geometry.attention[0].value_channels = 48 * 48;
  const auto choice = choose_context(odd, schemes_named({"q8_0"}), 1000 * kMebi, {.n_ctx = kWhole});
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, Code::kUnsupported);
}

TEST(ContextChoice, LeavesAQuarterAndDividesTheRest) {
  EXPECT_EQ(unasked_bytes(1000 * kMebi), 750 * kMebi);
  EXPECT_EQ(unasked_bytes(1000 * kMebi, 3), 250 * kMebi);
}

}  // namespace
}  // namespace slipstream
