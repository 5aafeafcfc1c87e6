#include "engine/forecast/kv_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Llama 3.1 8B in 4 bits: 16 GiB of f16 cache at its 131,072 tokens.
ModelProfile llama() {
  ModelProfile profile;
  profile.weights.copied = 9 * kGiB / 2;
  ModelGeometry& model = profile.geometry;
  model.architecture = "llama";
  model.n_ctx_train = 131072;
  model.n_layers = 32;
  model.n_tensors = 292;
  model.n_embd = 4096;
  model.n_vocab = 128256;
  model.ff_in = 2 * 14336;
  model.ff_out = 14336;
  for (int layer = 0; layer < 32; ++layer) {
    model.attention.push_back({.layer = layer,
                               .n_heads = 32,
                               .n_kv_heads = 8,
                               .key_channels = 1024,
                               .value_channels = 1024});
  }
  return profile;
}

std::string chosen(std::uint64_t gib, const ContextShape& shape = {}, bool has_plugin = true) {
  const Result<KvChoice> choice = choose(llama(), gib * kGiB, shape, has_plugin);
  return choice ? choice->scheme.name() : choice.error().message;
}

TEST(KvChoice, TakesTheBestThatFits) {
  EXPECT_EQ(chosen(64), "turbo8v4") << "not f16, even where that would fit";
  EXPECT_EQ(chosen(11), "turbo4");
  EXPECT_EQ(chosen(9), "turbo3");
  EXPECT_EQ(chosen(9, {.n_ctx = 8192}), "turbo8v4");
}

TEST(KvChoice, TakesF16WithoutThePluginOrWhereItCompressesNothing) {
  EXPECT_EQ(chosen(64, {}, false), "f16");
  ModelProfile latent = llama();
  for (AttentionLayer& layer : latent.geometry.attention) layer.value_channels = 0;
  EXPECT_EQ(choose(latent, 64 * kGiB, {}, true)->scheme.name(), "f16");
  latent.geometry.attention[0].value_channels = 1024;
  EXPECT_EQ(choose(latent, 64 * kGiB, {}, true)->scheme.name(), "turbo8v4");
}

std::vector<std::string> candidate_names(const KvFindings& findings) {
  std::vector<std::string> names;
  for (const KvScheme& scheme : candidates(llama().geometry, true, &findings)) {
    names.push_back(scheme.name());
  }
  return names;
}

KvFindings measured(std::initializer_list<const char*> names) {
  KvFindings findings;
  for (const char* name : names) findings.measured.push_back(*parse_kv_scheme(name));
  return findings;
}

TEST(KvChoice, OfACalibratedModelTheLeastMeasuredDivergenceThatFitsIsTaken) {
  const KvFindings findings = measured({"turbo8", "turbo8v4", "turbo4v3,0-3=turbo8v4"});
  EXPECT_EQ(choose(llama(), 64 * kGiB, {}, true, &findings)->scheme.name(), "turbo8");
  EXPECT_EQ(choose(llama(), 10 * kGiB, {}, true, &findings)->scheme.name(),
            "turbo4v3,0-3=turbo8v4");
  EXPECT_EQ(choose(llama(), 9 * kGiB, {}, true, &findings)->scheme.name(), "turbo3")
      << "not measured, and nothing that was fits";
}

TEST(KvChoice, WhatIsLargerAndNoBetterIsLeftOut) {
  EXPECT_THAT(candidate_names(measured({"turbo4", "turbo8v4", "turbo4v3", "turbo4v2"})),
              testing::ElementsAre("turbo4", "turbo4v3", "turbo4v2"));
  EXPECT_THAT(candidate_names(measured({"f16", "turbo8"})),
              testing::ElementsAre("f16", "turbo8", "turbo8v4", "turbo4", "turbo3"));
}

TEST(KvChoice, WhatCalibrationFoundBrokenIsNotTakenToSaveMemory) {
  KvFindings findings = measured({"turbo8v4"});
  findings.broken = {"turbo3"};
  EXPECT_EQ(choose(llama(), 11 * kGiB, {}, true, &findings)->scheme.name(), "turbo4");
  const Result<KvChoice> choice = choose(llama(), 9 * kGiB, {}, true, &findings);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().message, testing::Not(HasSubstr("turbo3")));
}

TEST(KvChoice, WhereAllSchemesAreBrokenTheCacheStaysExact) {
  KvFindings findings = measured({});
  findings.broken = {"turbo8v4", "turbo4", "turbo3"};
  EXPECT_EQ(choose(llama(), 64 * kGiB, {}, true, &findings)->scheme.name(), "f16");
}

TEST(KvChoice, WithoutThePluginFindingsDoNotCount) {
  const KvFindings findings = measured({"turbo4"});
  EXPECT_EQ(choose(llama(), 64 * kGiB, {}, false, &findings)->scheme.name(), "f16");
}

TEST(KvChoice, ForecastsWhatItChose) {
  const Result<KvChoice> choice = choose(llama(), 64 * kGiB, {.n_ctx = 10000}, true);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->forecast.n_ctx, 10240);
  EXPECT_EQ(choice->forecast.scheme, "turbo8v4");
  EXPECT_LE(needed_bytes(choice->forecast), 64 * kGiB);
}

TEST(KvChoice, RefusesWithTheContextsThatFit) {
  const Result<KvChoice> choice = choose(llama(), 6 * kGiB, {}, true);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, Code::kOutOfMemory);
  EXPECT_THAT(choice.error().message,
              testing::MatchesRegex(
                  "a context of 131072 needs [0-9.]+ GiB with turbo8v4, [0-9.]+ GiB with turbo4, "
                  "[0-9.]+ GiB with turbo3, and 6.0 GiB are available: --ctx [0-9]+ fits with "
                  "turbo3, --ctx [0-9]+ with turbo4, --ctx [0-9]+ with turbo8v4"));
  EXPECT_THAT(chosen(6, {}, false), HasSubstr(" fits with f16"));
}

TEST(KvChoice, RefusesAModelThatDoesNotFitAtAll) {
  EXPECT_THAT(chosen(2), HasSubstr("no context fits: use a smaller model"));
}

TEST(KvChoice, ItsLargestContextFitsAndTheNextDoesNot) {
  for (const std::string_view name : {"turbo8v4", "turbo3", "f16"}) {
    const KvScheme scheme = *parse_kv_scheme(name);
    const Result<std::int64_t> n_ctx = largest_context(llama(), scheme, 7 * kGiB, {});
    ASSERT_TRUE(n_ctx);
    ASSERT_GT(*n_ctx, 0);
    EXPECT_EQ(*n_ctx % 256, 0);
    EXPECT_LE(needed_bytes(*forecast(llama(), scheme, {.n_ctx = *n_ctx})), 7 * kGiB);
    EXPECT_GT(needed_bytes(*forecast(llama(), scheme, {.n_ctx = *n_ctx + 256})), 7 * kGiB);
  }
  EXPECT_EQ(largest_context(llama(), KvScheme{}, 1000 * kGiB, {}), 131072)
      << "no more than the model was trained for";
  EXPECT_EQ(largest_context(llama(), KvScheme{}, 1000 * kGiB, {.n_ctx = 200000}), 200192)
      << "unless more was asked for";
}

}  // namespace
}  // namespace slipstream
