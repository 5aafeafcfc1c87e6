// A model is loaded and its context filled in a process of its own, and what that process then has
// resident is what was forecast, within 5 %: for stock caches and for every scheme of the plugin
// that people are told of, and for each shape of model.
//
// The process is this program again (memory_forecast_test --fill ...), with the plugin in the
// environment, as packaged programs get it.
#include "engine/forecast/memory_forecast.h"

#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama-cpp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

constexpr ContextShape kShape{.n_ctx = 1024, .n_sequences_max = 4, .n_ubatch = 512, .n_threads = 1};
// Filled in pieces of so many tokens, one for each sequence: libllama has no more sequences.
constexpr ContextShape kLongShape{
    .n_ctx = 262144, .n_sequences_max = 256, .n_ubatch = 512, .n_threads = 1};
constexpr int kPieceTokens = 1024;
constexpr double kMiB = 1 << 20;

// --- the process that is measured

std::int64_t status_bytes(std::string_view key) {
  const std::string status = read_small_file("/proc/self/status").value_or("");
  const std::size_t at = status.find(key);
  return at == std::string::npos ? 0 : std::atoll(status.c_str() + at + key.size()) * 1024;
}

// As engine/model/model.cpp makes one.
llama_context_ptr make_context(llama_model* model, const KvScheme& scheme,
                               const ContextShape& shape) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(shape.n_ctx);
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(shape.n_ubatch);
  params.n_seq_max = params.n_outputs_max = static_cast<std::uint32_t>(shape.n_sequences_max);
  params.n_threads = params.n_threads_batch = static_cast<std::int32_t>(shape.n_threads);
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = scheme.key_type();
  params.type_v = scheme.value_type();
  params.kv_unified = true;
  params.swa_full = true;
  return llama_context_ptr(llama_init_from_model(model, params));
}

bool decode(llama_context* context, int first, int n, int n_outputs) {
  llama_batch batch = llama_batch_init(n, 0, 1);
  batch.n_tokens = n;
  for (int i = 0; i < n; ++i) {
    batch.token[i] = (first + i) * 7919 % 2000;
    batch.pos[i] = first + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = static_cast<std::int8_t>(i >= n - n_outputs);
  }
  const bool done = llama_decode(context, batch) == 0;
  llama_batch_free(batch);
  return done;
}

// Copies what sequence 0 has to the next one, and so on, as long as `n` more are wanted. Attention
// over all cells would take minutes; cells that are restored lie in memory like computed ones.
bool repeat(llama_context* context, int n) {
  std::vector<std::uint8_t> state(llama_state_seq_get_size(context, 0));
  if (llama_state_seq_get_data(context, state.data(), state.size(), 0) == 0) return false;
  for (int seq = 1; seq <= n; ++seq) {
    if (llama_state_seq_set_data(context, state.data(), state.size(), seq) == 0) return false;
  }
  return true;
}

// Fills all cells. The last batches are computed with all of them in the graph.
bool fill_cells(llama_context* context, const ContextShape& shape) {
  const int n_batch = static_cast<int>(shape.n_ubatch);
  const int n_ctx = static_cast<int>(shape.n_ctx);
  const int n_repeats = std::max(0, n_ctx / kPieceTokens - 2);
  const int n_computed = n_ctx - n_repeats * kPieceTokens;
  for (int first = 0; first < n_computed; first += n_batch) {
    if (n_repeats > 0 && first == kPieceTokens && !repeat(context, n_repeats)) return false;
    if (!decode(context, first, n_batch, static_cast<int>(shape.n_sequences_max))) return false;
  }
  return true;
}

// Prints by how many bytes the resident set has grown. Without mmap a model is anonymous memory, so
// only that is counted: how many pages of libraries are resident differs from run to run.
int fill(const char* path, const char* kv, const char* load_mode, bool is_repacked,
         const ContextShape& shape) {
  const Result<KvScheme> scheme = parse_kv_scheme(kv);
  if (!scheme) return 1;
  ggml_backend_load_all();
  const std::string_view counted = std::string_view(load_mode) == "none" ? "RssAnon:" : "VmRSS:";
  const std::int64_t before = status_bytes(counted);
  llama_model_params params = llama_model_default_params();
  params.load_mode = llama_load_mode_from_str(load_mode);
  params.use_extra_bufts = is_repacked;
  const llama_model_ptr model(llama_model_load_from_file(path, params));
  if (!model) return 1;
  const llama_context_ptr context = make_context(model.get(), *scheme, shape);
  if (!context || !fill_cells(context.get(), shape)) return 1;
  std::printf("%lld\n", static_cast<long long>(status_bytes(counted) - before));
  return 0;
}

// --- the test

// prompts: "on": our own products, of weights as they are in the file.
double measure(const std::filesystem::path& model, const KvScheme& scheme,
               std::string_view load_mode = "mmap", std::string_view prompts = "off",
               std::string_view shape = "short") {
  const std::string plugin =
      scheme.is_turbo() ? format_text("GGML_BACKEND_PATH={} GGML_TURBO_KV={} GGML_TURBO_PROMPTS={}",
                                      TURBO_PLUGIN, scheme.name(), prompts)
                        : "";
  const std::string command = format_text("env {} /proc/{}/exe --fill {} {} {} {} {} 2>/dev/null",
                                          plugin, ::getpid(), model.string(), scheme.name(),
                                          load_mode, prompts == "on" ? "plain" : "repacked", shape);
  double n_bytes = 0;
  std::FILE* output = ::popen(command.c_str(), "r");
  EXPECT_EQ(std::fscanf(output, "%lf", &n_bytes), 1) << command;
  EXPECT_EQ(::pclose(output), 0) << command;
  return n_bytes;
}

// Many heads on a narrow model: the cache is most of what it takes.
std::filesystem::path make_wide_model(int n_layers = 48) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / format_text("forecast-{}.gguf", ::getpid());
  const std::string command = format_text(
      "{} qwen3 {} --vocabulary {} --embd 64 --ff 64 --layers {} --heads 8 --kv-heads 8",
      MAKE_MODEL, path.string(), NEEDLE_MODEL, n_layers);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return path;
}

void expect_near(double measured, std::uint64_t forecasted, double allowed, std::string_view what) {
  std::printf("%s: %.1f MiB, forecast %.1f MiB (%+.1f %%)\n", std::string(what).c_str(),
              measured / kMiB, static_cast<double>(forecasted) / kMiB,
              100 * (static_cast<double>(forecasted) / measured - 1));
  EXPECT_NEAR(static_cast<double>(forecasted), measured, allowed) << what;
}

class ForecastOfScheme : public testing::TestWithParam<const char*> {};

TEST_P(ForecastOfScheme, IsWhatIsResident) {
  ggml_backend_load_all();
  const KvScheme scheme = *parse_kv_scheme(GetParam());
  const std::filesystem::path model = make_wide_model();
  const Result<MemoryForecast> forecasted = forecast(model, scheme, kShape);
  const double resident = measure(model, scheme);
  std::filesystem::remove(model);
  ASSERT_TRUE(forecasted) << forecasted.error().message;
  EXPECT_GT(static_cast<double>(forecasted->kv_bytes), 0.2 * resident);
  expect_near(resident, forecasted->resident(), 0.05 * resident, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, ForecastOfScheme,
                         testing::Values("f16", "q8_0", "turbo8", "turbo8v4", "turbo4", "turbo3",
                                         "turbo0v4"),
                         [](const auto& test) { return std::string(test.param); });

// Two layers with the KV heads of Qwen3-0.6B, and 262,144 tokens.
class ForecastOfLongContext : public testing::TestWithParam<const char*> {};

TEST_P(ForecastOfLongContext, IsWhatIsResident) {
  ggml_backend_load_all();
  const KvScheme scheme = *parse_kv_scheme(GetParam());
  const std::filesystem::path model = make_wide_model(/*n_layers=*/2);
  const Result<MemoryForecast> forecasted = forecast(model, scheme, kLongShape);
  const double resident = measure(model, scheme, "none", "off", "long");
  std::filesystem::remove(model);
  ASSERT_TRUE(forecasted) << forecasted.error().message;
  expect_near(resident, forecasted->total(), 0.05 * resident,
              format_text("{} with 262144 tokens", GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, ForecastOfLongContext, testing::Values("f16", "turbo4"),
                         [](const auto& test) { return std::string(test.param); });

// Without mmap nothing is resident but what is needed.
TEST(Forecast, TotalIsWhatIsResidentWithoutMmap) {
  ggml_backend_load_all();
  const KvScheme scheme = *parse_kv_scheme("turbo4");
  const std::filesystem::path model = make_wide_model();
  const Result<MemoryForecast> forecasted = forecast(model, scheme, kShape);
  const double resident = measure(model, scheme, "none");
  std::filesystem::remove(model);
  ASSERT_TRUE(forecasted) << forecasted.error().message;
  expect_near(resident, forecasted->total(), 0.05 * resident, "turbo4 without mmap");
}

// Nothing is copied where our own products read the mapped weights.
TEST(Forecast, OfPlainWeightsIsWhatIsResident) {
  ggml_backend_load_all();
  const KvScheme scheme = *parse_kv_scheme("turbo4");
  const std::filesystem::path model = make_wide_model();
  const Result<ModelProfile> profile = read_profile(model, {.are_plain = true});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->weights.copied, 0U);
  const Result<MemoryForecast> forecasted = forecast(*profile, scheme, kShape);
  const double resident = measure(model, scheme, "mmap", "on");
  std::filesystem::remove(model);
  ASSERT_TRUE(forecasted) << forecasted.error().message;
  expect_near(resident, forecasted->resident(), 0.05 * resident, "turbo4 with own products");
}

// The shapes are small: pages of libraries and tables are a good part of what they take.
constexpr double kSmallChange = 1.5 * kMiB;

class ForecastOfShape : public testing::TestWithParam<const char*> {};

TEST_P(ForecastOfShape, IsWhatIsResident) {
  ggml_backend_load_all();
  const std::filesystem::path model = format_text("{}/{}.gguf", FIXTURES, GetParam());
  for (const std::string_view kv : {"f16", "turbo4"}) {
    const KvScheme scheme = *parse_kv_scheme(kv);
    const Result<MemoryForecast> forecasted = forecast(model, scheme, kShape);
    ASSERT_TRUE(forecasted) << forecasted.error().message;
    const double resident = measure(model, scheme);
    expect_near(resident, forecasted->resident(), 0.05 * resident + kSmallChange,
                format_text("{} {}", GetParam(), kv));
  }
}

std::string shape_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, ForecastOfShape, testing::ValuesIn(std::array{SHAPES}), shape_name);

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  if (argc == 7 && std::string_view(argv[1]) == "--fill") {
    return slipstream::fill(
        argv[2], argv[3], argv[4], std::string_view(argv[5]) == "repacked",
        std::string_view(argv[6]) == "long" ? slipstream::kLongShape : slipstream::kShape);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
