#include "engine/model/model.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu_quota.h"
#include "base/format.h"
#include "contract/environment.h"
#include "engine/model/kv_scheme.h"
#include "engine/model/lazy_mapping.h"
#include "engine/model/llama_log.h"
#include "engine/model/own_thread.h"

namespace slipstream {
namespace {

// The plugin's scheme. If the cache has a stock type, the device has nothing to compress.
std::string turbo_scheme(const KvScheme& scheme) {
  return scheme.is_turbo() ? scheme.name() : "f16";
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
  // One batch is one graph: a step ends with its batch.
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(options.n_step_tokens_max);
  params.n_seq_max = static_cast<std::uint32_t>(options.n_sequences_max);
  // libllama aborts if this is less than the number of sequences.
  params.n_outputs_max =
      static_cast<std::uint32_t>(std::max(options.n_outputs_max, options.n_sequences_max));
  params.n_threads = params.n_threads_batch = threads_to_use(options.n_threads);
  params.flash_attn_type =
      options.has_flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = scheme.key_type();
  params.type_v = scheme.value_type();
  params.kv_unified = options.shares_cells;
  params.swa_full = true;  // so that a prefix can be taken over at any length
  params.no_perf = true;
  apply(options.rope, params);
  return params;
}

Result<llama_context_ptr> make_context(llama_model* model, const ModelOptions& options,
                                       const KvScheme& scheme,
                                       llama_context_type type = LLAMA_CONTEXT_TYPE_DEFAULT) {
  (void)take_llama_complaint();  // about something else
  llama_context_params params = context_params(options, scheme);
  params.ctx_type = type;
  llama_context_ptr context(llama_init_from_model(model, params));
  if (context == nullptr) {
    const std::string reason = first_llama_error();
    std::string text = with_llama_complaint(
        format_text("no context of {} tokens with {} KV", options.n_cells, options.kv));
    if (!text.ends_with(reason)) text += format_text(" ({})", reason);
    return fail(Code::kOutOfMemory, std::move(text));
  }
  return context;
}

// Reads a token and forgets it. A device learns how its caches are read from the first attention,
// and one on another machine sees none before it is to compute: rows that are restored before would
// be kept there as they are.
Result<void> show_first_attention(llama_context* context) {
  llama_token token = 0;
  (void)take_llama_complaint();
  if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) {
    return fail(Code::kUnsupported, with_llama_complaint("the machines of --rpc cannot compute"));
  }
  llama_memory_clear(llama_get_memory(context), /*data=*/true);
  return {};
}

}  // namespace

int threads_to_use(int n_asked) {
  if (n_asked > 0) return n_asked;
  // The kernel would pause threads within every step if there were more than the group may run.
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
  std::vector<ggml_backend_dev_t> devices;  // terminated by null
  std::vector<float> split;
  const bool is_spread = !options.spread.remote.empty();
  const bool streams = !options.experts.empty();
  std::optional<TurboDevice> turbo;
  if (scheme->is_turbo() || streams || options.has_products || is_spread) {
    Result<TurboDevice> opened =
        TurboDevice::open(options.plugin, turbo_scheme(*scheme), options.experts,
                          options.has_products, options.kv_memory);
    if (!opened) return std::unexpected(std::move(opened.error()));
    turbo = std::move(*opened);
    turbo->use_keys(effective_key_profile(options.key_profile));
    devices = {turbo->handle()};
    if (is_spread) {
      Result<SpreadDevices> spread =
          open_devices(options.spread, turbo->handle(), options.n_cells, *scheme);
      if (!spread) return std::unexpected(std::move(spread.error()));
      devices = std::move(spread->devices);
      split = std::move(spread->split);
      params.tensor_split = split.data();
    }
    devices.push_back(nullptr);
    params.devices = devices.data();
  }
  // Stock's layouts are not our kernels' to read. Other machines have plain rows, which are rounded
  // in another order: an answer must not depend on who has which layers.
  params.use_extra_bufts = options.is_repacked && !options.has_products && !is_spread;
  params.load_mtp = options.has_mtp;
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
  std::unique_ptr<RpcWatch> watch;
  if (is_spread) {
    Result<void> shown = show_first_attention(context->get());
    if (!shown) return std::unexpected(std::move(shown.error()));
    Result<std::unique_ptr<RpcWatch>> watching =
        RpcWatch::start(options.spread.hosts(), options.spread.on_lost);
    if (!watching) return std::unexpected(std::move(watching.error()));
    watch = std::move(*watching);
  }
  return Model(options, std::move(turbo), std::move(model), std::move(*context), std::move(watch));
}

Result<llama_context_ptr> Model::make_mtp_context(int n_sequences) const {
  SLIP_CHECK(has_mtp(), "a model that was loaded without its layer for MTP");
  const Result<KvScheme> scheme = parse_kv_scheme(options_.kv);
  if (!scheme) return std::unexpected(scheme.error());
  ModelOptions options = options_;
  options.n_sequences_max = options.n_outputs_max = n_sequences;
  return make_context(model_.get(), options, *scheme, LLAMA_CONTEXT_TYPE_MTP);
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
  SLIP_CHECK(!is_spread(), "the other machines keep their scheme");
  const Result<KvScheme> scheme = parse_kv_scheme(kv);
  if (!scheme) return std::unexpected(scheme.error());
  if (scheme->is_turbo() && !turbo_) {
    return fail(Code::kInvalidArgument,
                format_text("{} needs a model that was loaded with a turbo scheme", kv));
  }
  (void)take_llama_complaint();
  context_.reset();  // first: two caches may not fit
  options_.kv = kv;
  if (turbo_) {
    if (Result<void> set = turbo_->set_scheme(turbo_scheme(*scheme)); !set) return set;
    turbo_->use_keys(effective_key_profile(options_.key_profile));
  }
  Result<llama_context_ptr> context = make_context(model_.get(), options_, *scheme);
  if (!context) return std::unexpected(context.error());
  context_ = std::move(*context);
  return {};
}

}  // namespace slipstream
