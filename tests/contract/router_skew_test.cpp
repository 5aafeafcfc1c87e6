// make_model --zipf really skews which experts stock llama.cpp chooses, and by how much.
#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama-cpp.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr int kExperts = 64;
constexpr int kExpertsUsed = 4;
constexpr int kTokens = 512;

// How often each expert of each layer was chosen.
using ExpertCounts = std::map<std::string, std::vector<int>>;

// Called by llama.cpp before (ask) and after it computes each tensor.
bool count_experts(ggml_tensor* tensor, bool ask, void* user_data) {
  const std::string name = tensor->name;
  if (!name.starts_with("ffn_moe_topk")) return !ask;
  if (ask) return true;
  std::vector<int>& counts = (*static_cast<ExpertCounts*>(user_data))[name];
  counts.resize(kExperts);
  std::vector<std::int32_t> row(static_cast<std::size_t>(tensor->ne[0]));
  for (std::int64_t token = 0; token < tensor->ne[1]; ++token) {
    ggml_backend_tensor_get(tensor, row.data(), static_cast<std::size_t>(token) * tensor->nb[1],
                            row.size() * sizeof(std::int32_t));
    for (const std::int32_t expert : row) ++counts.at(static_cast<std::size_t>(expert));
  }
  return true;
}

std::filesystem::path make_model(std::string_view shape, float zipf) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / format_text("router-{}-{}.gguf", shape, zipf);
  const std::string command =
      format_text("{} {} {} --vocabulary {} --experts {} --experts-used {} --zipf {}", MAKE_MODEL,
                  shape, path.string(), NEEDLE_MODEL, kExperts, kExpertsUsed, zipf);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return path;
}

// The share of all choices that fall on the most popular tenth of the experts, over all layers.
double top_tenth_share(std::string_view shape, float zipf) {
  const std::filesystem::path path = make_model(shape, zipf);
  const llama_model_ptr model(
      llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  std::filesystem::remove(path);
  ExpertCounts layers;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kTokens;
  params.cb_eval = count_experts;
  params.cb_eval_user_data = &layers;
  const llama_context_ptr context(llama_init_from_model(model.get(), params));
  std::vector<llama_token> tokens(kTokens);
  for (int i = 0; i < kTokens; ++i) tokens[static_cast<std::size_t>(i)] = (i * 31 + 7) % 2000;
  EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(tokens.data(), kTokens)), 0);

  int n_top = 0;
  int n_all = 0;
  for (auto& [name, counts] : layers) {
    std::ranges::sort(counts, std::greater<>());
    n_top += std::accumulate(counts.begin(), counts.begin() + kExperts / 10, 0);
    n_all += std::accumulate(counts.begin(), counts.end(), 0);
  }
  EXPECT_GT(n_all, 0) << "no router was seen";
  return static_cast<double>(n_top) / n_all;
}

class RouterSkew : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    ggml_backend_load_all();
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  }
};

TEST_P(RouterSkew, FollowsTheExponent) {
  const double even = top_tenth_share(GetParam(), 0.0F);
  const double zipf = top_tenth_share(GetParam(), 1.0F);
  const double steep = top_tenth_share(GetParam(), 2.0F);
  std::printf("%s: top tenth of experts take %.3f, %.3f, %.3f of the choices (zipf 0, 1, 2)\n",
              GetParam(), even, zipf, steep);
  EXPECT_LT(even, 0.25);
  EXPECT_GT(zipf, 0.35);
  EXPECT_GT(steep, 0.6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RouterSkew, testing::Values("qwen3moe", "gpt-oss"));

}  // namespace
}  // namespace slipstream
