#include "engine/model/rope_scaling.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(RopeScaling, WhatIsNotSetIsLibllamasDefault) {
  llama_context_params params = llama_context_default_params();
  const llama_context_params own = params;
  apply(RopeScaling{}, params);
  EXPECT_EQ(params.rope_scaling_type, own.rope_scaling_type);
  EXPECT_EQ(params.rope_freq_base, own.rope_freq_base);
  EXPECT_EQ(params.rope_freq_scale, own.rope_freq_scale);
  EXPECT_EQ(params.yarn_ext_factor, own.yarn_ext_factor);
  EXPECT_EQ(params.yarn_attn_factor, own.yarn_attn_factor);
  EXPECT_EQ(params.yarn_beta_fast, own.yarn_beta_fast);
  EXPECT_EQ(params.yarn_beta_slow, own.yarn_beta_slow);
  EXPECT_EQ(params.yarn_orig_ctx, own.yarn_orig_ctx);
}

TEST(RopeScaling, EachSettingHasItsField) {
  llama_context_params params = llama_context_default_params();
  apply({.type = "yarn",
         .freq_base = 1,
         .freq_scale = 2,
         .yarn_orig_ctx = 3,
         .yarn_ext_factor = 4,
         .yarn_attn_factor = 5,
         .yarn_beta_fast = 6,
         .yarn_beta_slow = 7},
        params);
  EXPECT_EQ(params.rope_scaling_type, LLAMA_ROPE_SCALING_TYPE_YARN);
  EXPECT_EQ(params.rope_freq_base, 1);
  EXPECT_EQ(params.rope_freq_scale, 2);
  EXPECT_EQ(params.yarn_orig_ctx, 3U);
  EXPECT_EQ(params.yarn_ext_factor, 4);
  EXPECT_EQ(params.yarn_attn_factor, 5);
  EXPECT_EQ(params.yarn_beta_fast, 6);
  EXPECT_EQ(params.yarn_beta_slow, 7);
  apply({.type = "linear"}, params);
  EXPECT_EQ(params.rope_scaling_type, LLAMA_ROPE_SCALING_TYPE_LINEAR);
  apply({.type = "none"}, params);
  EXPECT_EQ(params.rope_scaling_type, LLAMA_ROPE_SCALING_TYPE_NONE);
}

TEST(RopeScaling, TextsDifferWhereSettingsDo) {
  EXPECT_EQ(to_text({}), "");
  EXPECT_TRUE(RopeScaling{}.is_own());
  EXPECT_EQ(to_text({.type = "yarn", .freq_scale = 0.25F}), "yarn scale 0.25");
  EXPECT_EQ(to_text({.freq_base = 1e6F, .yarn_orig_ctx = 8192}), "base 1e+06 original 8192");
  EXPECT_NE(to_text({.yarn_beta_fast = 2}), to_text({.yarn_beta_slow = 2}));
  EXPECT_NE(to_text({.yarn_ext_factor = 0}), to_text({.yarn_attn_factor = 0}));
  EXPECT_FALSE((RopeScaling{.yarn_ext_factor = 0}.is_own()));
}

TEST(RopeScaling, MultipliesTheContextThatWasTrained) {
  EXPECT_EQ(scaled_context({}, 8192, 0), 8192);
  EXPECT_EQ(scaled_context({.type = "yarn", .freq_scale = 0.25F}, 8192, 0), 32768);
  EXPECT_EQ(scaled_context({.type = "linear", .freq_scale = 0.5F}, 8192, 0), 16384);
  EXPECT_EQ(scaled_context({.freq_scale = 0.25F, .yarn_orig_ctx = 4096}, 8192, 0), 16384);
  EXPECT_EQ(scaled_context({.freq_scale = 0.25F}, 131072, 32768), 131072)
      << "the model's own context is scaled already";
  EXPECT_EQ(scaled_context({.type = "none"}, 131072, 32768), 32768);
  EXPECT_EQ(scaled_context({.type = "none", .freq_scale = 0.25F}, 8192, 0), 8192)
      << "as libllama: none is never scaled";
  EXPECT_EQ(scaled_context({.freq_base = 1e6F}, 8192, 0), 8192);
}

}  // namespace
}  // namespace slipstream
