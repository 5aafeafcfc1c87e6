// The probes: each looks at one part of the machine and returns findings. What they read from the
// system and what they make of it are separate functions, so that tests can give them other
// machines.
//
// Threads: call from one thread. Errors: none, see doctor.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/memory_info.h"
#include "cli/doctor/finding.h"

namespace slipstream::doctor {

std::vector<Finding> probe_cpu();
std::vector<Finding> probe_memory();
std::vector<Finding> probe_engine();
std::vector<Finding> probe_storage(const std::string& model_dir);

// --- what the probes make of what they read

struct CpuInfo {
  std::string model = "unknown CPU";
  unsigned n_cpus = 0;
  std::vector<std::string> features;  // as the kernel names them: avx512_vnni, asimddp
};
CpuInfo parse_cpuinfo(std::string_view proc_cpuinfo);
// The instruction sets that matter to our kernels and are present, best first.
std::vector<std::string> useful_features(const CpuInfo& cpu);

Finding judge_memory(const MemoryInfo& memory);

struct EngineInfo {
  std::string ggml_version;
  std::string llama_version;
  std::vector<std::string> device_names;  // "CPU", "BLAS", ...
  std::string turbo_path;                 // of the plugin for the compressed KV cache; may be empty
  std::string turbo_refusal;              // why it cannot be used; empty if it can
};
std::vector<Finding> judge_engine(const EngineInfo& engine);

}  // namespace slipstream::doctor
