// A model that changes its KV scheme computes what one computes that was loaded in it.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/model/model.h"

namespace slipstream {
namespace {

Result<Model> load(const std::string& kv) {
  return Model::load({.path = SLIPSTREAM_NEEDLE_MODEL,
                      .kv = kv,
                      .plugin = SLIPSTREAM_PLUGIN,
                      .n_cells = 256,
                      .n_step_tokens_max = 128,
                      .n_threads = 1,
                      .on_progress = {}});
}

std::vector<float> last_logits(Model& model) {
  std::vector<llama_token> tokens;
  for (llama_token i = 0; i < 100; ++i) tokens.push_back(300 + 7 * i);
  const llama_batch batch = llama_batch_get_one(tokens.data(), 100);
  if (llama_decode(model.context(), batch) != 0) return {};
  const float* logits = llama_get_logits_ith(model.context(), -1);
  return {logits, logits + llama_vocab_n_tokens(model.vocab())};
}

TEST(ChangeKv, GivesWhatAModelGivesThatWasLoadedInTheScheme) {
  Result<Model> changing = load("turbo8");
  ASSERT_TRUE(changing) << changing.error().message;
  std::vector<std::vector<float>> seen = {last_logits(*changing)};
  for (const char* kv : {"turbo2", "turbo4,0-1=turbo8", "f16", "q8_0"}) {
    const Result<void> changed = changing->change_kv(kv);
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(changing->kv(), kv);
    seen.push_back(last_logits(*changing));
  }
  ASSERT_FALSE(seen[0].empty());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(seen[i], seen[j]) << i << " and " << j;
  }
  // After all of that again, and in a model that has known no other.
  ASSERT_TRUE(changing->change_kv("turbo2"));
  EXPECT_EQ(last_logits(*changing), seen[1]);
  Result<Model> fresh = load("turbo2");
  ASSERT_TRUE(fresh) << fresh.error().message;
  EXPECT_EQ(last_logits(*fresh), seen[1]);
}

TEST(ChangeKv, ModelsThatLoadAtOnceHaveEachItsOwnScheme) {
  const std::vector<const char*> schemes = {"turbo2", "turbo8"};
  std::vector<std::vector<float>> wanted;
  for (const char* kv : schemes) {
    Result<Model> alone = load(kv);
    ASSERT_TRUE(alone) << alone.error().message;
    wanted.push_back(last_logits(*alone));
  }
  ASSERT_NE(wanted[0], wanted[1]);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 6; ++round) {
        Result<Model> model = load(schemes[i]);
        ASSERT_TRUE(model) << model.error().message;
        EXPECT_EQ(last_logits(*model), wanted[i]) << schemes[i];
      }
    });
  }
}

TEST(ChangeKv, RefusesWhatCannotBe) {
  Result<Model> plain = load("f16");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->change_kv("turbo4").error().code, Code::kInvalidArgument)
      << "its layers are not on the plugin's device";
  EXPECT_EQ(plain->change_kv("turbo5").error().code, Code::kInvalidArgument);
  EXPECT_TRUE(plain->change_kv("q4_0"));
}

}  // namespace
}  // namespace slipstream
