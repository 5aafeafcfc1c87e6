// Streamed experts give the resident model's logits, bit for bit, whatever the size of the cache.
//
// The reference is stock llama.cpp with its plain kernels (no repacking): the streamed slabs are
// plain. All tokens' logits are compared: of a prompt in uneven batches, then of generation, for
// one sequence and for eight.
#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama-cpp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "contract/plugin.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

struct ModelCase {
  const char* name;
  const char* shape;
  const char* options;
};

constexpr std::array kModels = {
    ModelCase{"qwen3moe_q4_K", "qwen3moe", "--type q4_K --ff 256 --experts 32 --zipf 1"},
    ModelCase{"qwen3moe_q8_0", "qwen3moe", "--type q8_0"},
    ModelCase{"gpt_oss_mxfp4", "gpt-oss", "--experts 16"},
    ModelCase{"gpt_oss_q8_0", "gpt-oss", "--experts 16 --type q8_0"},
    ModelCase{"gpt_oss_q4_K", "gpt-oss", "--experts 16 --type q4_K"},
};

struct Way {
  std::string experts = {};  // empty: resident, on the CPU device
  std::string kv = "f16";
  llama_load_mode load_mode = LLAMA_LOAD_MODE_MMAP;
  std::string prompts = "off";  // "on": our own products
};

// The plugin's functions, by name.
class Plugin {
 public:
  Plugin() {
    ggml_backend_load_all();
    llama_log_set(
        [](ggml_log_level level, const char* text, void*) {
          if (level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT)
            std::fputs(text, stderr);
        },
        nullptr);
    reg_ = ggml_backend_load(TURBO_PLUGIN);
  }
  // For as long as the process lives: models come and go.
  [[nodiscard]] ggml_backend_dev_t open(const Way& way) {
    auto* open = reinterpret_cast<turbo::OpenDevice::Function*>(
        ggml_backend_reg_get_proc_address(reg_, turbo::OpenDevice::kName));
    devices_.push_back(static_cast<ggml_backend_dev_t>(
        open(way.kv.c_str(), way.experts.c_str(), way.prompts.c_str(), "")));
    EXPECT_NE(devices_.back(), nullptr);
    return devices_.back();
  }

 private:
  ggml_backend_reg_t reg_;
  std::vector<ggml_backend_dev_t> devices_;
};

Plugin& plugin() {
  static Plugin plugin;
  return plugin;
}

llama_model_ptr load(const fs::path& path, const Way& way) {
  std::array<ggml_backend_dev_t, 2> devices = {plugin().open(way), nullptr};
  if (way.experts.empty() && way.kv == "f16" && way.prompts == "off") devices[0] = nullptr;
  llama_model_params params = llama_model_default_params();
  params.devices = devices.data();
  params.n_gpu_layers = devices[0] == nullptr ? 0 : 999;
  params.use_extra_bufts = false;
  params.load_mode = way.load_mode;
  return llama_model_ptr(llama_model_load_from_file(path.c_str(), params));
}

// Logits of all tokens; empty where a batch failed.
// One thread: a graph in many small parts on several threads is slow where other tests run too.
std::vector<float> logits(llama_model* model, int n_sequences, int n_threads = 1) {
  constexpr int kPrompt = 40;
  constexpr int kGenerated = 6;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 1024;
  params.n_batch = 512;
  params.n_ubatch = 96;
  params.n_seq_max = static_cast<std::uint32_t>(n_sequences);
  params.kv_unified = true;
  params.n_threads = n_threads;
  params.n_threads_batch = n_threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  const llama_context_ptr context(llama_init_from_model(model, params));
  EXPECT_TRUE(context);
  const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  std::vector<float> all;
  llama_batch batch = llama_batch_init(512, 0, 1);
  const auto add = [&](int seq, int pos) {
    const auto i = static_cast<std::size_t>(batch.n_tokens++);
    batch.token[i] = (seq * 131 + pos * 31 + 7) % 2000;
    batch.pos[i] = pos;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = seq;
    batch.logits[i] = 1;
  };
  const auto decode = [&] {
    const int status = llama_decode(context.get(), batch);
    for (int i = 0; status == 0 && i < batch.n_tokens; ++i) {
      const float* row = llama_get_logits_ith(context.get(), i);
      all.insert(all.end(), row, row + n_vocab);
    }
    batch.n_tokens = 0;
    return status == 0;
  };
  bool ok = true;
  for (int seq = 0; seq < n_sequences; ++seq) {
    for (int pos = 0; pos < kPrompt; ++pos) add(seq, pos);
  }
  ok = decode();
  for (int i = 0; ok && i < kGenerated; ++i) {
    for (int seq = 0; seq < n_sequences; ++seq) add(seq, kPrompt + i);
    ok = decode();
  }
  llama_batch_free(batch);
  if (!ok) all.clear();
  return all;
}

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
  return !left.empty() && left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

class ExpertStream : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    const std::string command =
        format_text("{} {} {} --vocabulary {} {}", MAKE_MODEL, GetParam().shape, path_.string(),
                    NEEDLE_MODEL, GetParam().options);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void TearDown() override { fs::remove(path_); }

  const fs::path path_ =
      fs::path("/var/tmp") / format_text("experts-{}-{}.gguf", GetParam().name, ::getpid());
};

TEST_P(ExpertStream, HasTheResidentModelsLogitsForEveryCacheSize) {
  for (const int n_sequences : {1, 8}) {
    const std::vector<float> resident = logits(load(path_, {}).get(), n_sequences);
    // From less than an expert per layer to all of them.
    for (const char* cache : {"1K", "1M", "2M", "3M", "5M", "8M", "16M", "64M", "1G"}) {
      EXPECT_TRUE(same_bits(resident, logits(load(path_, {.experts = cache}).get(), n_sequences)))
          << cache << ", " << n_sequences << " sequences";
    }
  }
}

// Our own products are not stock's to the last bit, but they too are the same wherever experts are.
TEST_P(ExpertStream, HasThemWithOurOwnProducts) {
  for (const int n_sequences : {1, 8}) {
    const std::vector<float> resident = logits(load(path_, {.prompts = "on"}).get(), n_sequences);
    EXPECT_FALSE(same_bits(resident, logits(load(path_, {}).get(), n_sequences)));
    for (const char* cache : {"1K", "1M", "3M", "8M", "64M", "1G"}) {
      EXPECT_TRUE(same_bits(
          resident, logits(load(path_, {.experts = cache, .prompts = "on"}).get(), n_sequences)))
          << cache << ", " << n_sequences << " sequences";
    }
  }
}

TEST_P(ExpertStream, HasThemHoweverItReadsAndChooses) {
  const std::vector<float> resident = logits(load(path_, {}).get(), 8);
  for (const char* options :
       {"3M,policy=lru", "3M,policy=lfu", "3M,lookahead=off", "3M,io=buffered", "3M,io=pread"}) {
    EXPECT_TRUE(same_bits(resident, logits(load(path_, {.experts = options}).get(), 8))) << options;
  }
  EXPECT_TRUE(same_bits(
      resident, logits(load(path_, {.experts = "3M", .load_mode = LLAMA_LOAD_MODE_NONE}).get(), 8)))
      << "read instead of mapped";
}

TEST_P(ExpertStream, HasThemWhereTheModelIsSplit) {
  const fs::path folder = path_.string() + ".split";
  fs::create_directory(folder);
  const std::string command = format_text("llama-gguf-split --split-max-tensors 12 {} {}/part",
                                          path_.string(), folder.string());
  ASSERT_EQ(std::system((command + " > /dev/null 2>&1").c_str()), 0) << command;
  std::vector<fs::path> parts(fs::directory_iterator(folder), {});
  std::ranges::sort(parts);
  EXPECT_GT(parts.size(), 2U);
  const std::vector<float> resident = logits(load(path_, {}).get(), 1);
  for (const llama_load_mode mode : {LLAMA_LOAD_MODE_MMAP, LLAMA_LOAD_MODE_NONE}) {
    EXPECT_TRUE(same_bits(
        resident, logits(load(parts.front(), {.experts = "2M", .load_mode = mode}).get(), 1)));
  }
  fs::remove_all(folder);
}

TEST_P(ExpertStream, HasThemOnTwoThreads) {
  EXPECT_TRUE(same_bits(logits(load(path_, {}).get(), 1, 2),
                        logits(load(path_, {.experts = "64M"}).get(), 1, 2)));
}

TEST_P(ExpertStream, GoesTogetherWithACompressedCache) {
  const Way resident = {.experts = "", .kv = "turbo8v4"};
  const Way streamed = {.experts = "3M", .kv = "turbo8v4"};
  EXPECT_TRUE(
      same_bits(logits(load(path_, resident).get(), 8), logits(load(path_, streamed).get(), 8)));
}

TEST_P(ExpertStream, PinnedExpertsChangeNothingButWhatIsRead) {
  const std::string trace = path_.string() + ".trace";
  const std::vector<float> resident = logits(load(path_, {}).get(), 1);
  EXPECT_TRUE(same_bits(resident, logits(load(path_, {.experts = "3M,trace=" + trace}).get(), 1)));
  EXPECT_GT(fs::file_size(trace), 0U);
  EXPECT_TRUE(same_bits(resident, logits(load(path_, {.experts = "3M,pin=" + trace}).get(), 1)));
  fs::remove(trace);
}

// The file is cut short under a loaded model, and mended: a failed batch, then right ones again.
// The rest of the weights is read, not mapped: a mapping of a file that shrinks kills any program.
TEST_P(ExpertStream, AFileCutShortFailsTheBatchAndNothingElse) {
  const llama_model_ptr streamed =
      load(path_, {.experts = "1M", .load_mode = LLAMA_LOAD_MODE_NONE});
  const std::vector<float> before = logits(streamed.get(), 1);
  ASSERT_FALSE(before.empty());
  const fs::path copy = path_.string() + ".copy";
  fs::copy_file(path_, copy);
  fs::resize_file(path_, fs::file_size(path_) / 8);
  EXPECT_TRUE(logits(streamed.get(), 1).empty());
  {
    std::ofstream out(path_, std::ios::binary | std::ios::in);
    out << std::ifstream(copy, std::ios::binary).rdbuf();
  }
  fs::remove(copy);
  EXPECT_TRUE(same_bits(before, logits(streamed.get(), 1)));
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertStream, testing::ValuesIn(kModels),
                         [](const auto& model) { return std::string(model.param.name); });

}  // namespace
}  // namespace slipstream
