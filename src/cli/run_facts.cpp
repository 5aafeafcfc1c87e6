#include "cli/run_facts.h"

#include <ggml.h>
#include <llama.h>
#include <sys/utsname.h>

#include <array>
#include <cstdlib>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/memory_info.h"
#include "base/unique_fd.h"
#include "cli/doctor/probes.h"
#include "cli/version.h"
#include "engine/model/model_fingerprint.h"

namespace slipstream {
using nlohmann::json;

Result<json> describe_model(const std::filesystem::path& model) {
  const Result<Fingerprint> fingerprint = fingerprint_of(model, "");
  if (!fingerprint) return std::unexpected(fingerprint.error());
  return json{{"model", model.filename().string()},
              {"model bytes", std::filesystem::file_size(model)},
              {"model fingerprint", to_hex(*fingerprint)},
              {"slipstream", std::string(kVersion)},
              {"llama.cpp", llama_version()},
              {"ggml", ggml_version()}};
}

json describe_machine() {
  json machine;
  const Result<std::string> cpuinfo = read_small_file("/proc/cpuinfo");
  if (cpuinfo) {
    const doctor::CpuInfo cpu = doctor::parse_cpuinfo(*cpuinfo);
    machine["cpu"] = cpu.model;
    machine["cores"] = cpu.n_cpus;
    machine["instruction sets"] = doctor::useful_features(cpu);
  }
  if (const Result<MemoryInfo> memory = read_memory_info(); memory) {
    machine["memory"] = format_bytes(memory->total_bytes);
  }
  machine["memory speed, one core"] = format_text("{:.1f} GB/s", doctor::read_bandwidth_gb_per_s());
  utsname system = {};
  if (uname(&system) == 0) machine["kernel"] = system.release;
  std::array<double, 1> load = {};
  if (getloadavg(load.data(), 1) == 1) machine["load average at the start"] = load[0];
  return machine;
}

}  // namespace slipstream
