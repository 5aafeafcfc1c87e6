// The tests of attention_test.cpp where a query reads a part of what it sees: one token has almost
// all of its weight, so the textbook's result, which reads all, is the right one. And what a limit
// must not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "device/attention/attention_fixture.h"

namespace slipstream::turbo {
namespace {

INSTANTIATE_TEST_SUITE_P(Choice, Attention,
                         testing::Values(AttentionCase{.name = "turbo4",
                                                       .scheme = "turbo4,attend=512",
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "turbo8",
                                                       .scheme = "turbo8,attend=512",
                                                       .head_dim = 128,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "turbo3_head_80",
                                                       .scheme = "turbo3,attend=512",
                                                       .head_dim = 80,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "turbo2_head_256",
                                                       .scheme = "turbo2,attend=512",
                                                       .head_dim = 256,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "plain_values",
                                                       .scheme = "turbo4v0,attend=512",
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "one_kv_head_on_threads",
                                                       .scheme = "turbo4,attend=1024",
                                                       .n_heads = 8,
                                                       .n_kv_heads = 1,
                                                       .n_threads = 3,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "rows_for_themselves",
                                                       .scheme = "turbo4,attend=512",
                                                       .n_queries = 9,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "streams",
                                                       .scheme = "turbo4,attend=512",
                                                       .n_queries = 3,
                                                       .n_streams = 3,
                                                       .n_threads = 2,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "softcap_and_sinks",
                                                       .scheme = "turbo4,attend=512",
                                                       .softcap = 40,
                                                       .sinks = true,
                                                       .n_cells = 3000,
                                                       .planted = true},
                                         AttentionCase{.name = "two_passes",
                                                       .scheme = "turbo4,attend=512",
                                                       .head_dim = 128,
                                                       .n_cells = 5000,
                                                       .planted = true},
                                         AttentionCase{.name = "one_pass_head_64",
                                                       .scheme = "turbo3,attend=512",
                                                       .n_cells = 5000,
                                                       .planted = true},
                                         AttentionCase{.name = "two_passes_of_a_prompt",
                                                       .scheme = "turbo4,attend=1024",
                                                       .head_dim = 128,
                                                       .n_queries = 10,
                                                       .n_cells = 9000,
                                                       .own_cells = true,
                                                       .keeps_prompt = false,
                                                       .planted = true},
                                         AttentionCase{.name = "fitted",
                                                       .scheme = "turbo4,attend=512",
                                                       .head_dim = 128,
                                                       .n_cells = 3000,
                                                       .is_fitted = true,
                                                       .planted = true}),
                         attention_case_name);

// An Attention that can be made within a test.
class OneAttention : public Attention {
 public:
  explicit OneAttention(const AttentionCase& its_case) : Attention(its_case) {}
  void TestBody() override {}

  [[nodiscard]] std::vector<float> result() {
    write_cache(keys_);
    write_cache(values_);
    run();
    const std::span numbers(static_cast<const float*>(op_->data),
                            static_cast<std::size_t>(ggml_nelements(op_)));
    return {numbers.begin(), numbers.end()};
  }
};

TEST(AttentionChoice, ALimitThatCoversTheContextChangesNothing) {
  AttentionCase all{.name = "all",
                    .scheme = "turbo4",
                    .n_queries = 37,
                    .n_streams = 2,
                    .n_threads = 2,
                    .n_cells = 2000,
                    .own_cells = true};
  AttentionCase limited = all;
  limited.scheme = "turbo4,attend=2048";
  EXPECT_EQ(OneAttention(limited).result(), OneAttention(all).result());
  limited.scheme = "turbo4,attend=512";
  EXPECT_NE(OneAttention(limited).result(), OneAttention(all).result());
}

TEST(AttentionChoice, TheResultDoesNotDependOnThreads) {
  AttentionCase one{.name = "one",
                    .scheme = "turbo4,attend=512",
                    .n_heads = 2,
                    .n_kv_heads = 2,
                    .n_cells = 3000,
                    .own_cells = true};
  AttentionCase three = one;
  three.n_threads = 2;  // a head each, so that no piece is split
  EXPECT_EQ(OneAttention(three).result(), OneAttention(one).result());
}

}  // namespace
}  // namespace slipstream::turbo
