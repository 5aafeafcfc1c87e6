// The tests of attention_test.cpp on keys that are coded in a fitted basis.
#include <gtest/gtest.h>

#include "device/attention/attention_fixture.h"

namespace slipstream::turbo {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Fitted, Attention,
    testing::Values(
        AttentionCase{.name = "turbo4", .scheme = "turbo4", .is_fitted = true},
        AttentionCase{.name = "turbo3", .scheme = "turbo3", .head_dim = 128, .is_fitted = true},
        AttentionCase{.name = "head_48", .scheme = "turbo4", .head_dim = 48, .is_fitted = true},
        AttentionCase{.name = "head_80",
                      .scheme = "turbo3",
                      .head_dim = 80,
                      .n_queries = 9,
                      .is_fitted = true},
        AttentionCase{.name = "head_256",
                      .scheme = "turbo4",
                      .head_dim = 256,
                      .n_queries = 9,
                      .is_fitted = true},
        AttentionCase{.name = "one_kv_head",
                      .scheme = "turbo4v0",
                      .n_heads = 8,
                      .n_kv_heads = 1,
                      .n_threads = 2,
                      .is_fitted = true},
        AttentionCase{.name = "sinks_and_softcap",
                      .scheme = "turbo4",
                      .n_queries = 5,
                      .softcap = 5,
                      .sinks = true,
                      .is_fitted = true},
        AttentionCase{.name = "precise",
                      .scheme = "turbo4",
                      .n_cells = 330,
                      .own_cells = true,
                      .is_fitted = true},
        AttentionCase{.name = "precise_prefill",
                      .scheme = "turbo3",
                      .head_dim = 128,
                      .n_queries = 70,
                      .n_streams = 2,
                      .n_threads = 3,
                      .n_cells = 330,
                      .own_cells = true,
                      .is_fitted = true},
        AttentionCase{.name = "restored",
                      .scheme = "turbo4",
                      .n_queries = 70,
                      .n_cells = 330,
                      .own_cells = true,
                      .keeps_prompt = false,
                      .is_fitted = true}),
    attention_case_name);

}  // namespace
}  // namespace slipstream::turbo
