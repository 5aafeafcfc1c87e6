#include "bench/calibrate/width_choice.h"

#include <gtest/gtest.h>

#include <random>

#include "bench/calibrate/probe.h"

namespace slipstream::calibrate {
namespace {

// One layer with 128 bytes of keys and of values at 8 bits, and what 4 and 3 bits add.
LayerGroup layer(int idx, double key_4, double key_3, double value_4, double value_3) {
  return {.first_layer = idx,
          .last_layer = idx,
          .keys = {{.bits = 8, .kl = 0, .bytes_per_token = 128},
                   {.bits = 4, .kl = key_4, .bytes_per_token = 64},
                   {.bits = 3, .kl = key_3, .bytes_per_token = 48}},
          .values = {{.bits = 8, .kl = 0, .bytes_per_token = 128},
                     {.bits = 4, .kl = value_4, .bytes_per_token = 64},
                     {.bits = 3, .kl = value_3, .bytes_per_token = 48}}};
}

TEST(WidthChoice, TakesTheSmallestWidthsWithinTheBudget) {
  const std::vector<LayerGroup> layers = {layer(0, 0.001, 0.01, 0.001, 0.004),
                                          layer(1, 0.001, 0.002, 0.001, 0.004)};
  EXPECT_EQ(scheme_of(choose_widths(layers, 0.1).groups), "turbo3");
  EXPECT_EQ(scheme_of(choose_widths(layers, 0.0041).groups), "turbo4");
  EXPECT_EQ(scheme_of(choose_widths(layers, 0.00001).groups), "turbo8");
  // 0.005 above turbo4: the keys of layer 1 and the values of one layer
  const WidthChoice mixed = choose_widths(layers, 0.0081);
  EXPECT_EQ(mixed.groups[0].bits.keys, 4);
  EXPECT_EQ(mixed.groups[1].bits.keys, 3);
  EXPECT_EQ(mixed.groups[0].bits.values + mixed.groups[1].bits.values, 7);
  EXPECT_NEAR(mixed.kl, 0.008, 1e-9);
}

TEST(WidthChoice, ASensitiveLayerKeepsItsBits) {
  const std::vector<LayerGroup> layers = {layer(0, 0.5, 2, 0.001, 0.004),
                                          layer(1, 0.001, 0.002, 0.001, 0.002)};
  EXPECT_EQ(scheme_of(choose_widths(layers, 0.02).groups), "turbo3,0=turbo8v3");
}

TEST(WidthChoice, WithoutABudgetEverythingStaysWide) {
  const std::vector<LayerGroup> layers = {layer(0, 0.001, 0.01, 0.001, 0.004)};
  EXPECT_EQ(scheme_of(choose_widths(layers, 0).groups), "turbo8");
  EXPECT_EQ(scheme_of(choose_widths(layers, -1).groups), "turbo8");
}

TEST(WidthChoice, WhatCannotBeWithinTheBudgetStaysWide) {
  LayerGroup group = layer(0, 0.01, 0.02, 0.01, 0.02);
  group.keys.erase(group.keys.begin());
  EXPECT_EQ(choose_widths(std::vector{group}, 0.001).groups[0].bits, (turbo::Bits{4, 8}));
}

// Compares with trying every combination, on random layers.
TEST(WidthChoice, NothingWithinTheBudgetIsSmaller) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> kl(0.0, 0.01);
  for (int round = 0; round < 20; ++round) {
    const std::vector<LayerGroup> layers = {
        layer(0, kl(random), kl(random), kl(random), kl(random)),
        layer(1, kl(random), kl(random), kl(random), kl(random))};
    const double budget = 0.012;
    double fewest = 1e9;
    for (int combination = 0; combination < 81; ++combination) {
      double bytes = 0;
      double sum = 0;
      int rest = combination;
      for (const auto* options :
           {&layers[0].keys, &layers[0].values, &layers[1].keys, &layers[1].values}) {
        const WidthOption& option = (*options)[static_cast<std::size_t>(rest % 3)];
        bytes += option.bytes_per_token;
        sum += option.kl;
        rest /= 3;
      }
      // A choice closer to the budget than a counting step may be missed.
      if (sum <= budget * 0.9996) fewest = std::min(fewest, bytes);
    }
    const WidthChoice choice = choose_widths(layers, budget);
    EXPECT_LE(choice.kl, budget);
    double bytes = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      for (const WidthOption& option : layers[i].keys) {
        if (option.bits == choice.groups[i].bits.keys) bytes += option.bytes_per_token;
      }
      for (const WidthOption& option : layers[i].values) {
        if (option.bits == choice.groups[i].bits.values) bytes += option.bytes_per_token;
      }
    }
    EXPECT_LE(bytes, fewest) << "round " << round;
  }
}

TEST(WidthChoice, NamesWhatMostLayersHaveFirst) {
  const auto group = [](int first, int last, turbo::Bits bits) {
    return ChosenGroup{.first_layer = first, .last_layer = last, .bits = bits};
  };
  EXPECT_EQ(scheme_of(std::vector{group(0, 3, {8, 4}), group(4, 15, {4, 3}), group(16, 19, {8, 4}),
                                  group(20, 20, {8, 4}), group(21, 21, {3, 3})}),
            "turbo4v3,0-3=turbo8v4,16-20=turbo8v4,21=turbo3");
  EXPECT_EQ(scheme_of(std::vector{group(0, 27, {8, 4})}), "turbo8v4");
}

ModelGeometry with_heads_of(std::int64_t head_dim) {
  ModelGeometry geometry;
  geometry.attention = {{.n_heads = 6,
                         .n_kv_heads = 6,
                         .key_channels = 6 * head_dim,
                         .value_channels = 6 * head_dim}};
  return geometry;
}

TEST(CheckScheme, StocksTypesNeedHeadsOfWholeBlocks) {
  for (const char* kv : {"q8_0", "q4_0", kKeysWithoutCentre}) {
    EXPECT_TRUE(check_scheme(with_heads_of(64), kv)) << kv;
    const Result<void> refused = check_scheme(with_heads_of(48), kv);
    ASSERT_FALSE(refused) << kv;
    EXPECT_EQ(refused.error().code, Code::kUnsupported) << kv;
  }
  EXPECT_TRUE(check_scheme(with_heads_of(48), "turbo4"));
}

}  // namespace
}  // namespace slipstream::calibrate
