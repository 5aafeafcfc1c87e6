#include "hub/gguf_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string chosen(const std::vector<std::string>& paths, std::string_view asked) {
  const std::vector<Variant> variants = find_variants(paths);
  const Result<VariantChoice> choice = choose_variant(variants, asked, "a/b");
  if (!choice) return choice.error().message;
  return paths[variants[choice->variant_idx].parts.at(0)];
}

TEST(GgufChoice, ReadsTheQuantOutOfAName) {
  EXPECT_EQ(quant_of("Qwen3-0.6B-Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(quant_of("dir/llama-2-7b.q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(quant_of("M-UD-Q4_K_XL-00001-of-00002.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(quant_of("M-IQ2_XXS.gguf"), "IQ2_XXS");
  EXPECT_EQ(quant_of("M-BF16.gguf"), "BF16");
  EXPECT_EQ(quant_of("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(quant_of("Q8_0/model.gguf"), "");  // a folder is not part of the file's name
  EXPECT_EQ(quant_of("needle-4m.gguf"), "");
  EXPECT_EQ(quant_of("Q4_K_M-distilled-Q8_0.gguf"), "Q8_0");
}

TEST(GgufChoice, ReadsParts) {
  const std::optional<SplitName> split = parse_split("Q2/M-Q2_K-00002-of-00003.gguf");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stem, "Q2/M-Q2_K");
  EXPECT_EQ(split->part, 2);
  EXPECT_EQ(split->n_parts, 3);
  EXPECT_FALSE(parse_split("M-00004-of-00003.gguf"));
  EXPECT_FALSE(parse_split("M-00000-of-00003.gguf"));
  EXPECT_FALSE(parse_split("M-1-of-3.gguf"));
}

TEST(GgufChoice, PartsAreOneVariantInOrderAndOtherFilesAreNone) {
  const std::vector<std::string> paths = {"README.md",          "M-Q8_0-00002-of-00002.gguf",
                                          "mmproj-M-Q8_0.gguf", "M-Q8_0-00001-of-00002.gguf",
                                          "M.imatrix.gguf",     "M-Q4_0.gguf"};
  const std::vector<Variant> variants = find_variants(paths);
  ASSERT_EQ(variants.size(), 2U);
  EXPECT_EQ(variants[0].quant, "Q4_0");
  EXPECT_EQ(variants[1].quant, "Q8_0");
  EXPECT_THAT(variants[1].parts, ElementsAre(3, 1));
  EXPECT_TRUE(check_complete(variants[1]));
}

TEST(GgufChoice, AMissingPartIsSaid) {
  const std::vector<std::string> paths = {"M-Q8_0-00001-of-00003.gguf",
                                          "M-Q8_0-00003-of-00003.gguf"};
  const Result<void> complete = check_complete(find_variants(paths).at(0));
  ASSERT_FALSE(complete);
  EXPECT_EQ(complete.error().message, "M-Q8_0 has 2 of its 3 parts: choose another quant");
}

TEST(GgufChoice, AQuantIsFoundInAnyCase) {
  const std::vector<std::string> paths = {"M-Q4_K_M.gguf", "M-Q8_0.gguf", "M-UD-Q2_K_XL.gguf",
                                          "other-name.gguf"};
  EXPECT_EQ(chosen(paths, "q8_0"), "M-Q8_0.gguf");
  EXPECT_EQ(chosen(paths, "Q2_K_XL"), "M-UD-Q2_K_XL.gguf");
  EXPECT_EQ(chosen(paths, "Other-Name"), "other-name.gguf");
  EXPECT_EQ(chosen(paths, "Q6_K"), "a/b has no Q6_K; it has Q4_K_M, Q8_0, UD-Q2_K_XL, other-name");
  // A prefix does not match: Q4_K is not Q4_K_M.
  EXPECT_THAT(chosen(paths, "Q4_K"), HasSubstr("has no Q4_K;"));
}

TEST(GgufChoice, WithoutAQuantTheDefaultIsTakenAndSaid) {
  EXPECT_EQ(chosen({"M-Q2_K.gguf", "M-Q4_K_M.gguf", "M-Q8_0.gguf"}, ""), "M-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"M-F16.gguf", "M-Q8_0.gguf"}, ""), "M-Q8_0.gguf");
  EXPECT_EQ(chosen({"M-Q6_K.gguf", "M-Q5_0.gguf"}, ""), "M-Q5_0.gguf");
  EXPECT_THAT(chosen({"model.safetensors"}, ""), HasSubstr("a/b has no model in GGUF"));
  const std::vector<std::string> paths = {"M-F16.gguf", "M-Q8_0.gguf"};
  const std::vector<Variant> variants = find_variants(paths);
  EXPECT_EQ(choose_variant(variants, "", "a/b")->remark,
            "no quant was named: taking Q8_0 of F16, Q8_0");
  EXPECT_EQ(choose_variant(variants, "F16", "a/b")->remark, "");
}

TEST(GgufChoice, TwoFilesOfOneQuantAreSaid) {
  const std::vector<std::string> paths = {"A-Q8_0.gguf", "B-Q8_0.gguf"};
  const std::vector<Variant> variants = find_variants(paths);
  EXPECT_EQ(choose_variant(variants, "q8_0", "a/b")->remark,
            "2 files have the quant Q8_0; taking A-Q8_0");
  EXPECT_EQ(chosen(paths, "b-q8_0"), "B-Q8_0.gguf");
}

}  // namespace
}  // namespace slipstream::hub
