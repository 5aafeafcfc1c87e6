// The probes: each examines one part of the machine and returns findings. Reading from the system
// and judging the result are separate functions, so that tests can supply other machines.
//
// Threads: call from one thread. Errors: none, see doctor.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_info.h"
#include "cli/doctor/finding.h"
#include "engine/forecast/product_trial.h"

namespace slipstream::doctor {

std::vector<Finding> probe_cpu();
std::vector<Finding> probe_memory();
std::vector<Finding> probe_engine();
std::vector<Finding> probe_storage(const std::string& model_dir);
// `model` is a GGUF file, or org/repo[:quant] of an installed model.
std::vector<Finding> probe_model(const std::string& model);

// What one core reads from memory per second; 0 if it cannot be measured.
double read_bandwidth_gb_per_s();

// --- how the probes judge what they read

struct CpuInfo {
  std::string model = "unknown CPU";
  unsigned n_cpus = 0;
  std::vector<std::string> features;  // under the kernel's names: avx512_vnni, asimddp
};
CpuInfo parse_cpuinfo(std::string_view proc_cpuinfo);
// The instruction sets that matter to the kernels and are present, best first.
std::vector<std::string> useful_features(const CpuInfo& cpu);

Finding judge_memory(const MemoryInfo& memory);

struct EngineInfo {
  std::string ggml_version;
  std::string llama_version;
  std::vector<std::string> device_names;  // "CPU", "BLAS", ...
  std::string turbo_path;                 // the plugin for the compressed KV cache; may be empty
  std::string turbo_refusal;              // why it cannot be used; empty if it can
  bool has_rpc = false;                   // for layers on other machines
};
std::vector<Finding> judge_engine(const EngineInfo& engine);

// What is known about a model without loading it.
struct ModelNeeds {
  std::string architecture;
  // What serve would take by default; if that does not fit, f16 and the least context.
  std::string kv = "f16";
  std::int64_t n_context = 0;
  std::string why_context = "the least";
  std::uint64_t n_bytes = 0;           // with everything in memory
  std::uint64_t n_bytes_streamed = 0;  // without the experts
  std::uint64_t n_expert_bytes = 0;
  std::int64_t n_experts = 0;  // per layer
  std::int64_t n_experts_used = 0;
  std::uint64_t n_available_bytes = 0;
  double disk_bytes_per_second = 0;           // 0: not measured
  std::optional<ProductTrial> products = {};  // nullopt: not tried
};
std::vector<Finding> judge_model(const ModelNeeds& model);

}  // namespace slipstream::doctor
