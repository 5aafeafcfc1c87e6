#include "engine/speculation/mtp_layer.h"

#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"
#include "engine/speculation/mtp_calls.h"

namespace slipstream {
namespace {

constexpr const char* kInput = "blk.1.nextn.eh_proj.weight";

std::string why_not(const std::string& architecture, int n_mtp_layers, const std::string& tensor) {
  const TestFolder folder;
  GgufMaker maker(architecture);
  maker.set(architecture + ".block_count", 2);
  if (n_mtp_layers >= 0) maker.set(architecture + ".nextn_predict_layers", n_mtp_layers);
  maker.matrix(tensor, 32, 16);
  const Result<void> checked = check_mtp_layer(maker.write(folder.path() / "model.gguf"));
  if (checked) return "";
  EXPECT_EQ(checked.error().code, Code::kUnsupported);
  EXPECT_TRUE(checked.error().message.starts_with("model.gguf: ")) << checked.error().message;
  return checked.error().message;
}

TEST(MtpLayer, IsUsedWhereItWasTested) {
  EXPECT_EQ(why_not("glm4moe", 1, kInput), "");
  EXPECT_EQ(why_not("deepseek2", 1, kInput), "");
}

// libllama would abort.
TEST(MtpLayer, OthersAreRefusedWithAReason) {
  EXPECT_TRUE(why_not("glm4moe", -1, kInput).contains("no layer for it"));
  EXPECT_TRUE(why_not("glm4moe", 0, kInput).contains("no layer for it"));
  EXPECT_TRUE(why_not("step35", 1, kInput).contains("not tested with the architecture step35"));
  EXPECT_TRUE(why_not("glm4moe", 3, kInput).contains("of its 3 layers one"));
  EXPECT_TRUE(why_not("glm4moe", 1, "blk.1.attn_q.weight").contains("without the weights"));
}

TEST(MtpCalls, AreUsedWithVersionsThatWereTested) {
  EXPECT_TRUE(is_tested_for_mtp("0.7"));
  EXPECT_TRUE(is_tested_for_mtp("0.7.1"));
  EXPECT_FALSE(is_tested_for_mtp("0.8.0"));
  EXPECT_FALSE(is_tested_for_mtp("0.70"));
  EXPECT_TRUE(find_mtp_calls().has_value()) << "the packaged libllama has them";
}

}  // namespace
}  // namespace slipstream
