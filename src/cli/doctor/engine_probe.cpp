#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <format>

#include "cli/doctor/probes.h"
#include "cli/version.h"

namespace slipstream::doctor {
namespace {

EngineInfo read_engine() {
  // The registry reports each library it loads on standard error; the report says it better.
  ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  EngineInfo engine{
      .ggml_version = ggml_version(), .llama_version = llama_version(), .device_names = {}};
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    engine.device_names.emplace_back(ggml_backend_dev_name(ggml_backend_dev_get(i)));
  }
  return engine;
}

bool has_device(const EngineInfo& engine, std::string_view prefix) {
  return std::ranges::any_of(engine.device_names,
                             [&](const std::string& name) { return name.starts_with(prefix); });
}

Finding judge_versions(const EngineInfo& engine) {
  const bool tested =
      engine.ggml_version == kTestedGgmlVersion && engine.llama_version == kTestedLlamaVersion;
  return {.status = tested ? Status::kGood : Status::kNote,
          .topic = "engine",
          .value = std::format("llama.cpp {}, ggml {}", engine.llama_version, engine.ggml_version),
          .advice = tested ? ""
                           : std::format("tested with llama.cpp {} and ggml {}: install those if "
                                         "something misbehaves",
                                         kTestedLlamaVersion, kTestedGgmlVersion)};
}

Finding judge_devices(const EngineInfo& engine) {
  std::string names;
  for (const std::string& name : engine.device_names) names += (names.empty() ? "" : ", ") + name;
  if (!has_device(engine, "CPU")) {
    return {.status = Status::kMissing,
            .topic = "devices",
            .value = names.empty() ? "none" : names,
            .advice =
                "ggml found no CPU backend: reinstall libggml0, and check that "
                "GGML_BACKEND_PATH is unset or points to a backend"};
  }
  if (has_device(engine, "BLAS")) {
    return {.status = Status::kNote,
            .topic = "devices",
            .value = names,
            .advice =
                "the BLAS backend takes matrix products from faster kernels: remove "
                "libggml0-backend-blas"};
  }
  return {.status = Status::kGood, .topic = "devices", .value = names, .advice = ""};
}

}  // namespace

std::vector<Finding> judge_engine(const EngineInfo& engine) {
  return {judge_versions(engine), judge_devices(engine)};
}

std::vector<Finding> probe_engine() { return judge_engine(read_engine()); }

}  // namespace slipstream::doctor
