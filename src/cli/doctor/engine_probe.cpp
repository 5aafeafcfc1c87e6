#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/format.h"
#include "cli/doctor/probes.h"
#include "cli/plugin_path.h"
#include "cli/version.h"

namespace slipstream::doctor {
namespace {

// The registry logs each library that it loads; the report says this better. The last line is kept
// because it says why a plugin refused.
std::string& last_log_line() {
  static std::string line;
  return line;
}

void keep_log_line(ggml_log_level /*level*/, const char* text, void* /*user_data*/) {
  last_log_line() =
      std::string_view(text).substr(0, std::string_view(text).find_last_not_of('\n') + 1);
}

void read_turbo(EngineInfo& engine) {
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  if (!plugin) {
    engine.turbo_refusal = plugin.error().message;
    return;
  }
  engine.turbo_path = plugin->string();
  last_log_line().clear();
  if (ggml_backend_load(plugin->c_str()) == nullptr) {
    engine.turbo_refusal = last_log_line().empty() ? "ggml refused it" : last_log_line();
  }
}

EngineInfo read_engine() {
  ggml_log_set(keep_log_line, nullptr);
  ggml_backend_load_all();
  EngineInfo engine;
  engine.ggml_version = ggml_version();
  engine.llama_version = llama_version();
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    engine.device_names.emplace_back(ggml_backend_dev_name(ggml_backend_dev_get(i)));
  }
  engine.has_rpc = ggml_backend_reg_by_name("RPC") != nullptr;
  read_turbo(engine);
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
          .value = format_text("llama.cpp {}, ggml {}", engine.llama_version, engine.ggml_version),
          .advice = tested ? ""
                           : format_text("tested with llama.cpp {} and ggml {}: install those if "
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

Finding judge_turbo(const EngineInfo& engine) {
  const bool usable = engine.turbo_refusal.empty();
  return {.status = usable ? Status::kGood : Status::kNote,
          .topic = "compressed KV",
          .value = usable ? engine.turbo_path : "not available: " + engine.turbo_refusal,
          .advice = usable ? ""
                           : format_text("the cache stays f16: install {} beside this program, for "
                                         "ggml {}",
                                         kPluginName, kTestedGgmlVersion)};
}

Finding judge_rpc(const EngineInfo& engine) {
  return {.status = Status::kGood,
          .topic = "other machines",
          .value = engine.has_rpc ? "serve --rpc can use them; ggml's RPC has neither password nor "
                                    "encryption: through ssh or WireGuard only"
                                  : "not used; serve --rpc would need libggml0-backend-rpc",
          .advice = ""};
}

}  // namespace

std::vector<Finding> judge_engine(const EngineInfo& engine) {
  return {judge_versions(engine), judge_devices(engine), judge_turbo(engine), judge_rpc(engine)};
}

std::vector<Finding> probe_engine() { return judge_engine(read_engine()); }

}  // namespace slipstream::doctor
