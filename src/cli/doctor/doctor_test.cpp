#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/doctor/finding.h"
#include "cli/doctor/probes.h"
#include "cli/version.h"

namespace slipstream::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Doctor, ReportAlignsFindingsAndPutsAdviceBelow) {
  const std::vector<Finding> findings = {
      {.status = Status::kGood, .topic = "cpu", .value = "fast", .advice = ""},
      {.status = Status::kNote, .topic = "disk", .value = "full", .advice = "empty it"}};
  EXPECT_EQ(format_report(findings),
            "ok       cpu                fast\n"
            "note     disk               full\n"
            "                            -> empty it\n"
            "\n"
            "Ready. 1 note above would make it better.\n");
}

TEST(Doctor, AMissingThingIsNotReady) {
  const std::vector<Finding> findings = {
      {.status = Status::kMissing, .topic = "devices", .value = "none", .advice = "install"}};
  EXPECT_THAT(format_report(findings), HasSubstr("Not ready: 1 missing."));
}

TEST(Doctor, ReadsCpuinfoOfX86AndArm) {
  const CpuInfo x86 = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nflags\t\t: fpu avx2 f16c avx512_vnni\n\n"
      "processor\t: 1\nmodel name\t: Some CPU @ 2GHz\nflags\t\t: fpu avx2 f16c avx512_vnni\n");
  EXPECT_EQ(x86.model, "Some CPU @ 2GHz");
  EXPECT_EQ(x86.n_cpus, 2U);
  EXPECT_THAT(useful_features(x86), ElementsAre("avx512_vnni", "avx2", "f16c"));

  const CpuInfo arm = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd asimddp\n");
  EXPECT_EQ(arm.model, "unknown CPU");
  EXPECT_THAT(useful_features(arm), ElementsAre("asimddp", "asimd"));
}

TEST(Doctor, MemoryIsJudgedByWhatCanBeUsed) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  MemoryInfo memory{.total_bytes = 16 * kGiB,
                    .available_bytes = 12 * kGiB,
                    .cgroup_limit_bytes = {},
                    .cgroup_available_bytes = {}};
  EXPECT_EQ(judge_memory(memory).status, Status::kGood);
  memory.cgroup_limit_bytes = 2 * kGiB;
  EXPECT_THAT(judge_memory(memory).value, HasSubstr("limited to 2.0 GiB here"));
  EXPECT_THAT(judge_memory(memory).advice, HasSubstr("memory limit"));
  memory.cgroup_limit_bytes = {};
  memory.available_bytes = 1 * kGiB;
  EXPECT_EQ(judge_memory(memory).status, Status::kNote);
}

TEST(Doctor, AModelThatFitsOnlyWithItsExpertsInTheFileIsAdvisedSo) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  ModelNeeds model{.architecture = "qwen3moe",
                   .n_bytes = 60 * kGiB,
                   .n_bytes_streamed = 3 * kGiB,
                   .n_expert_bytes = 56 * kGiB,
                   .n_experts = 128,
                   .n_experts_used = 8,
                   .n_available_bytes = 15 * kGiB,
                   .disk_bytes_per_second = 3.5 * 1024 * 1024 * 1024};
  const std::vector<Finding> findings = judge_model(model);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_THAT(findings[0].advice, HasSubstr("--stream-experts"));
  EXPECT_THAT(findings[1].value, HasSubstr("a token reads 3.5 GiB, or 358 MiB while 90 %"));
  EXPECT_THAT(findings[2].value, HasSubstr("no more than 1.0 tokens/s at first and 10 at 90 %"));
  model.n_available_bytes = 64 * kGiB;
  EXPECT_EQ(judge_model(model)[0].status, Status::kGood);
  model.n_available_bytes = 2 * kGiB;
  EXPECT_THAT(judge_model(model)[0].advice, HasSubstr("smaller"));
}

TEST(Doctor, SaysWhichContextAModelGetsAndWhy) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const ModelNeeds model{.architecture = "llama",
                         .kv = "turbo8v4",
                         .n_context = 65536,
                         .why_context = "what fits into memory, of 131072",
                         .n_bytes = 11 * kGiB,
                         .n_available_bytes = 15 * kGiB};
  EXPECT_EQ(judge_model(model).at(0).value,
            "llama, needs 11.0 GiB with turbo8v4 KV for a context of 65536 tokens (what fits into "
            "memory, of 131072), 15.0 GiB are available");
}

TEST(Doctor, SaysWhoReadsPromptsAndWhy) {
  ModelNeeds model{.architecture = "qwen3", .n_bytes = 1, .n_available_bytes = 2};
  EXPECT_EQ(judge_model(model).size(), 1U);  // too small to be tried
  model.products = {.prompt = 3.14, .decode = 1.02};
  EXPECT_THAT(judge_model(model).at(1).value,
              HasSubstr("our own kernels: ours read prompts 3.1 times as fast as stock's, and "
                        "decode 1.02 times as fast"));
  model.products = {.prompt = 3.14, .decode = 0.8};
  EXPECT_THAT(judge_model(model).at(1).value, HasSubstr("stock's kernels: ours read prompts 3.1"));
}

EngineInfo tested_engine(std::vector<std::string> devices) {
  return {.ggml_version = kTestedGgmlVersion,
          .llama_version = kTestedLlamaVersion,
          .device_names = std::move(devices),
          .turbo_path = "/usr/lib/slipstream/libggml-turbo.so",
          .turbo_refusal = ""};
}

TEST(Doctor, EngineWithoutACpuBackendIsMissing) {
  EXPECT_EQ(judge_engine(tested_engine({"CPU"})).at(1).status, Status::kGood);
  EXPECT_EQ(judge_engine(tested_engine({})).at(1).status, Status::kMissing);
}

TEST(Doctor, EngineNotesSlowBlasAndUntestedVersions) {
  EXPECT_THAT(judge_engine(tested_engine({"CPU", "BLAS"})).at(1).advice,
              HasSubstr("remove libggml0-backend-blas"));
  EngineInfo other = tested_engine({"CPU"});
  other.ggml_version = "0.1.0";
  EXPECT_EQ(judge_engine(other).at(0).status, Status::kNote);
}

TEST(Doctor, EngineNotesAPluginThatRefuses) {
  EngineInfo engine = tested_engine({"CPU"});
  EXPECT_EQ(judge_engine(engine).at(2).status, Status::kGood);
  engine.turbo_refusal = "turbo: written for another ggml";
  EXPECT_EQ(judge_engine(engine).at(2).status, Status::kNote);
  EXPECT_THAT(judge_engine(engine).at(2).value, HasSubstr("written for another ggml"));
}

TEST(Doctor, EngineSaysThatOtherMachinesAskForNoPassword) {
  EngineInfo engine = tested_engine({"CPU"});
  EXPECT_THAT(judge_engine(engine).at(3).value, HasSubstr("libggml0-backend-rpc"));
  engine.has_rpc = true;
  EXPECT_THAT(judge_engine(engine).at(3).value, HasSubstr("neither password nor encryption"));
}

// The probes run on the test's machine. Each one must answer, and each fault must come with advice.
TEST(Doctor, ProbesAnswerOnThisMachine) {
  std::vector<Finding> findings = probe_cpu();
  findings.append_range(probe_memory());
  findings.append_range(probe_engine());
  findings.append_range(probe_storage("."));
  EXPECT_GE(findings.size(), 9U);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.value.empty()) << finding.topic;
    EXPECT_EQ(finding.status == Status::kGood, finding.advice.empty()) << finding.topic;
  }
}

TEST(Doctor, StorageOfAnAbsentDirectoryIsANote) {
  for (const Finding& finding : probe_storage("/nonexistent")) {
    if (finding.topic == "io_uring") continue;
    EXPECT_EQ(finding.status, Status::kNote);
    EXPECT_THAT(finding.advice, HasSubstr("--dir"));
  }
}

}  // namespace
}  // namespace slipstream::doctor
