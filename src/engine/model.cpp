#include "engine/model.h"

#include <ggml-backend.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/cpu_quota.h"
#include "base/format.h"
#include "base/log.h"
#include "contract/environment.h"
#include "engine/lazy_mapping.h"
#include "engine/llama_log.h"
#include "engine/memory/kv_scheme.h"
#include "engine/own_thread.h"
#include "engine/turbo_plugin.h"

namespace slipstream {
namespace {

// The scheme belongs to the device, of which there is one, as do how experts are streamed and what
// was fitted to keys: weights and contexts take them over when they are made. So whoever opens the
// device keeps it until its context is there.
std::unique_lock<std::mutex> keep_turbo() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

Result<ggml_backend_dev_t> open_turbo(const ModelOptions& options, bool is_turbo_scheme) {
  static ggml_backend_reg_t reg = nullptr;  // ggml keeps what it has loaded
  if (reg == nullptr) reg = ggml_backend_load(options.plugin.c_str());
  if (reg == nullptr) {
    return fail(Code::kUnsupported, with_llama_complaint(format_text("ggml refuses the plugin {}",
                                                                     options.plugin.string())));
  }
  auto* open = find_turbo_function<turbo::OpenDevice>();
  const char* scheme = is_turbo_scheme ? options.kv.c_str() : "f16";
  auto* device = open == nullptr ? nullptr : static_cast<ggml_backend_dev_t>(open(scheme));
  if (device == nullptr) {
    return fail(Code::kInvalidArgument,
                with_llama_complaint(format_text("no KV scheme {}", options.kv)));
  }
  auto* stream = find_turbo_function<turbo::StreamExperts>();
  if (stream == nullptr || !stream(options.experts.c_str())) {
    return fail(Code::kInvalidArgument, with_llama_complaint(format_text(
                                            "cannot stream experts with {}", options.experts)));
  }
  auto* use_keys = find_turbo_function<turbo::UseKeys>();
  const std::filesystem::path keys = effective_key_profile(options.key_profile);
  if (use_keys == nullptr || !use_keys(keys.c_str())) {  // keys can do without
    log::warn("model.key_profile", {{"ignored", take_llama_complaint()}});
  }
  return device;
}

bool report_progress(float progress, void* user_data) noexcept {
  try {
    return (*static_cast<const std::function<bool(float)>*>(user_data))(progress);
  } catch (...) {
    return false;
  }
}

llama_context_params context_params(const ModelOptions& options, const KvScheme& scheme) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.n_cells);
  // One batch is one graph: a step is over when its batch is.
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(options.n_step_tokens_max);
  params.n_seq_max = static_cast<std::uint32_t>(options.n_sequences_max);
  // libllama aborts below the number of sequences.
  params.n_outputs_max =
      static_cast<std::uint32_t>(std::max(options.n_outputs_max, options.n_sequences_max));
  params.n_threads = params.n_threads_batch = threads_to_use(options.n_threads);
  params.flash_attn_type =
      options.has_flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = scheme.key_type();
  params.type_v = scheme.value_type();
  params.kv_unified = options.shares_cells;
  params.swa_full = true;  // a prefix can be taken over at any length
  params.no_perf = true;
  return params;
}

Result<llama_context_ptr> make_context(llama_model* model, const ModelOptions& options,
                                       const KvScheme& scheme) {
  llama_context_ptr context(llama_init_from_model(model, context_params(options, scheme)));
  if (context == nullptr) {
    return fail(Code::kOutOfMemory,
                with_llama_complaint(format_text("no context of {} tokens with {} KV",
                                                 options.n_cells, options.kv)));
  }
  return context;
}

}  // namespace

int threads_to_use(int n_asked) {
  if (n_asked > 0) return n_asked;
  // More threads than the group may run at a time are stopped in the middle of every step.
  const int n_cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(n_cores, cgroup_cpus().value_or(n_cores)));
}

void load_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    redirect_llama_log();
    ggml_backend_load_all();
  });
}

Result<Model> Model::load(const ModelOptions& options) {
  SLIP_CHECK(options.n_cells > 0 && options.n_sequences_max > 0, "a context for nothing");
  load_backends();
  (void)take_llama_complaint();
  const Result<KvScheme> scheme = parse_kv_scheme(options.kv);
  if (!scheme) return std::unexpected(scheme.error());
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    return fail(Code::kNotFound, format_text("there is no model {}", options.path.string()));
  }

  llama_model_params params = llama_model_default_params();
  std::array<ggml_backend_dev_t, 2> devices = {};  // ends with null
  const bool streams = !options.experts.empty();
  std::unique_lock<std::mutex> kept;
  if (scheme->is_turbo() || streams) {
    kept = keep_turbo();
    const Result<ggml_backend_dev_t> turbo = open_turbo(options, scheme->is_turbo());
    if (!turbo) return std::unexpected(turbo.error());
    devices[0] = *turbo;
    params.devices = devices.data();
  }
  bool was_cancelled = false;
  const std::function<bool(float)> progress = [&](float done) {
    was_cancelled = options.on_progress && !options.on_progress(done);
    return !was_cancelled;
  };
  params.progress_callback = report_progress;
  params.progress_callback_user_data = const_cast<std::function<bool(float)>*>(&progress);

  llama_model_ptr model;
  std::string failure;
  on_own_thread([&] {  // weights are repacked with OpenMP
    std::optional<LazyMapping> lazy;
    if (streams) lazy.emplace();
    model.reset(llama_model_load_from_file(options.path.c_str(), params));
    if (model == nullptr)
      failure = with_llama_complaint(format_text("cannot load {}", options.path.string()));
  });
  if (was_cancelled) return fail(Code::kCancelled, "loading was given up");
  if (model == nullptr) return fail(Code::kUnsupported, std::move(failure));
  const auto cannot_generate = [&options](std::string_view why) {
    return fail(
        Code::kUnsupported,
        format_text("{} {}: only models that write their text token after token can be used",
                    options.path.string(), why));
  };
  if (llama_model_has_encoder(model.get()) || !llama_model_has_decoder(model.get())) {
    return cannot_generate("has an encoder");
  }
  if (llama_model_is_diffusion(model.get())) return cannot_generate("is a diffusion model");
  Result<llama_context_ptr> context = make_context(model.get(), options, *scheme);
  if (!context) return std::unexpected(context.error());
  if (llama_get_memory(context->get()) == nullptr) {
    return cannot_generate("keeps no context, as BERT and other models that only read");
  }
  return Model(options, scheme->is_turbo(), std::move(model), std::move(*context));
}

std::filesystem::path effective_key_profile(const std::filesystem::path& asked) {
  const char* named = std::getenv(turbo::kProfileVariable);
  return named != nullptr ? std::filesystem::path(named) : asked;
}

std::filesystem::path Model::key_profile() const {
  const Result<KvScheme> scheme = parse_kv_scheme(options_.kv);
  const bool counts = scheme && scheme->is_turbo();
  return counts ? effective_key_profile(options_.key_profile) : std::filesystem::path();
}

Result<void> Model::change_kv(const std::string& kv) {
  const Result<KvScheme> scheme = parse_kv_scheme(kv);
  if (!scheme) return std::unexpected(scheme.error());
  if (scheme->is_turbo() && !is_on_turbo_) {
    return fail(Code::kInvalidArgument,
                format_text("{} needs a model that was loaded with a turbo scheme", kv));
  }
  (void)take_llama_complaint();
  context_.reset();  // first: two caches may not fit
  options_.kv = kv;
  std::unique_lock<std::mutex> kept;
  if (is_on_turbo_) {
    kept = keep_turbo();
    const Result<ggml_backend_dev_t> turbo = open_turbo(options_, scheme->is_turbo());
    if (!turbo) return std::unexpected(turbo.error());
  }
  Result<llama_context_ptr> context = make_context(model_.get(), options_, *scheme);
  if (!context) return std::unexpected(context.error());
  context_ = std::move(*context);
  return {};
}

}  // namespace slipstream
