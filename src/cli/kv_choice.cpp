#include "cli/kv_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "cli/kv_profile.h"
#include "cli/plugin_path.h"
#include "engine/forecast/context_choice.h"
#include "engine/forecast/kv_choice.h"
#include "engine/forecast/product_trial.h"
#include "engine/model/model.h"

namespace slipstream {
namespace {

// A wish together with what calibration found out about the model, if it was calibrated.
struct InformedWish {
  std::string_view scheme;
  std::optional<KvFindings> findings = {};
  // A scheme that reads a part of the tokens, and the context to which it was measured.
  std::optional<KvScheme> limited = {};
  std::int64_t limited_to = 0;
  std::filesystem::path key_profile = {};
};

// f16 is included only if calibration chose it: turbo schemes are faster at depth.
Result<std::vector<KvScheme>> measured_ones(const calibrate::Evidence& evidence) {
  std::vector<KvScheme> schemes;
  if (evidence.chosen == "f16") schemes.emplace_back();
  for (const calibrate::SchemeEvidence& measured : calibrate::measured_schemes(evidence)) {
    const Result<KvScheme> scheme = parse_kv_scheme(measured.kv);
    if (!scheme) return std::unexpected(scheme.error());
    if (scheme->is_turbo() && !calibrate::why_broken(evidence, *scheme)) schemes.push_back(*scheme);
  }
  return schemes;
}

// The schemes that auto might fall back to but that the evidence speaks against.
std::vector<std::string> broken_ones(const calibrate::Evidence& evidence) {
  std::vector<std::string> broken;
  for (const std::string_view name : kv_scheme_names()) {
    const Result<KvScheme> scheme = parse_kv_scheme(name);
    if (scheme && calibrate::why_broken(evidence, *scheme)) broken.emplace_back(name);
  }
  return broken;
}

Result<InformedWish> inform(const std::filesystem::path& model, const KvWish& wish,
                            const RopeScaling& rope) {
  InformedWish informed{.scheme = wish.scheme};
  // What was measured and fitted are keys with the model's own positions.
  if (!rope.is_own()) {
    if (wish.profile.empty()) return informed;
    return fail(
        Code::kInvalidArgument,
        "a profile of calibrate holds for the model's own positions: leave out --kv-profile "
        "or the flags --rope-... and --yarn-...");
  }
  const std::optional<calibrate::Profile> profile = find_kv_profile(model, wish.profile);
  if (!profile) return informed;
  informed.key_profile = profile->keys;
  if (wish.scheme == "auto") {
    Result<std::vector<KvScheme>> measured = measured_ones(profile->evidence);
    if (!measured) return std::unexpected(measured.error());
    informed.findings = {.measured = std::move(*measured),
                         .broken = broken_ones(profile->evidence)};
    if (const auto& attend = profile->evidence.attend; attend && !attend->chosen.empty()) {
      const Result<KvScheme> scheme = parse_kv_scheme(attend->chosen);
      if (!scheme) return std::unexpected(scheme.error());
      informed.limited = *scheme;
      informed.limited_to = attend->depth_max;
    }
    return informed;
  }
  const Result<KvScheme> scheme = parse_kv_scheme(wish.scheme);
  if (!scheme) return std::unexpected(scheme.error());
  const std::optional<std::string> broken = calibrate::why_broken(profile->evidence, *scheme);
  if (broken && !wish.is_forced) {
    return fail(
        Code::kInvalidArgument,
        format_text("{}: use --kv auto for the best that fits, or --kv-force to use {} anyway",
                    *broken, wish.scheme));
  }
  return informed;
}

void log_choice(const std::filesystem::path& model, const InformedWish& wish, const KvPlan& plan) {
  if (!wish.findings) return;
  log::info("kv.calibrated", {{"model", model.filename().string()}, {"kv", plan.scheme}});
  if (!wish.limited || plan.scheme == wish.limited->name()) return;
  log::info("kv.reads_all",
            {{"model", model.filename().string()},
             {"why", plan.n_context > wish.limited_to
                         ? format_text("{} was measured to {} tokens, and the context has {}",
                                       wish.limited->name(), wish.limited_to, plan.n_context)
                         : format_text("{} does not fit", wish.limited->name())}});
}

// How many bytes the model may take: at all, and without having been asked for a context.
struct Budget {
  std::uint64_t available_bytes;
  std::uint64_t unasked_bytes;
};

std::int64_t own_context(const ModelProfile& profile, const ContextWish& context) {
  return scaled_context(context.rope, profile.geometry.n_ctx_train,
                        profile.geometry.n_ctx_original);
}

// What a default context has at most: all that the model has, or all that is of use. A header may
// claim any number.
std::int64_t default_context(const ModelProfile& profile, const ContextWish& context) {
  constexpr std::int64_t kClaimMax = 1 << 24;
  const std::int64_t n_own = std::min(own_context(profile, context), kClaimMax);
  const std::int64_t n_ctx = n_own > 0 ? n_own : kContextLeast;
  return context.n_useful > 0 ? std::min(n_ctx, context.n_useful) : n_ctx;
}

// What was found out, for a context of at most n_ctx tokens. A scheme that reads a part of the
// tokens comes first where it was measured: who calibrates it asks for it.
std::optional<KvFindings> findings_for(const InformedWish& kv, std::int64_t n_ctx) {
  std::optional<KvFindings> findings = kv.findings;
  if (findings && kv.limited && n_ctx <= kv.limited_to) {
    findings->measured.insert(findings->measured.begin(), *kv.limited);
  }
  return findings;
}

Result<KvChoice> choose_or_check(const ModelProfile& profile, const InformedWish& kv,
                                 const ContextWish& context, const Budget& budget,
                                 bool has_plugin) {
  const std::optional<KvFindings> findings = findings_for(
      kv, context.shape.n_ctx > 0 ? context.shape.n_ctx : default_context(profile, context));
  const KvFindings* found = findings ? &*findings : nullptr;
  std::vector<KvScheme> schemes;
  if (kv.scheme == "auto") {
    schemes = candidates(profile.geometry, has_plugin, found);
  } else {
    const Result<KvScheme> scheme = parse_kv_scheme(kv.scheme);
    if (!scheme) return std::unexpected(scheme.error());
    schemes.push_back(*scheme);
  }
  ContextShape shape = context.shape;
  if (shape.n_ctx == 0) {
    shape.n_ctx = default_context(profile, context);
    Result<std::optional<KvChoice>> roomy =
        choose_context(profile, schemes, budget.unasked_bytes, shape);
    if (!roomy) return std::unexpected(roomy.error());
    if (*roomy) return std::move(**roomy);
    shape.n_ctx = std::min(shape.n_ctx, kContextLeast);
  }
  if (kv.scheme == "auto") {
    return choose(profile, budget.available_bytes, shape, has_plugin, found);
  }
  return check_fits(profile, schemes.front(), budget.available_bytes, shape, has_plugin);
}

Budget budget_of(const MemoryWish& memory) {
  return {.available_bytes = memory.available_bytes,
          .unasked_bytes = unasked_bytes(memory.available_bytes, memory.n_models)};
}

std::string why_context(const ModelProfile& profile, const KvChoice& choice,
                        const ContextWish& context) {
  const std::int64_t n_own = own_context(profile, context);
  const std::int64_t n_ctx = choice.forecast.n_ctx;
  if (context.shape.n_ctx > 0) return "as asked";
  if (n_own > 0 && n_ctx >= n_own)
    return context.rope.is_own() ? "the model's own" : "the model's own, scaled";
  if (n_ctx >= default_context(profile, context)) return "as much as is of use";
  return format_text("what fits into memory, of {}", n_own);
}

KvPlan plan_of(const ModelProfile& profile, const KvChoice& choice, const ContextWish& context) {
  ContextShape shape = context.shape;
  shape.n_ctx = choice.forecast.n_ctx;
  // Savings are reported against f16.
  const Result<MemoryForecast> f16 = forecast(profile, KvScheme(), shape);
  return {.scheme = choice.scheme.name(),
          .plugin = {},
          .experts = {},
          .n_context = static_cast<int>(choice.forecast.n_ctx),
          .n_context_own = own_context(profile, context),
          .why_context = why_context(profile, choice, context),
          .kv_bytes = choice.forecast.kv_bytes,
          .kv_f16_bytes = f16 ? f16->kv_bytes : 0,
          .total_bytes = needed_bytes(choice.forecast)};
}

// The share of the remaining memory that is used for experts. The rest of the system
// needs some too.
constexpr double kCacheShare = 0.9;

// Without a size for that cache, a default context leaves most of the memory to it: three quarters.
Budget streaming_budget(const MemoryWish& memory, const WeightWish& wish) {
  if (wish.expert_cache_bytes == 0) {
    return {
        .available_bytes = memory.available_bytes,
        .unasked_bytes = memory.available_bytes / 4 / static_cast<std::uint64_t>(memory.n_models)};
  }
  const std::uint64_t left =
      memory.available_bytes - std::min(memory.available_bytes, wish.expert_cache_bytes);
  return {.available_bytes = left, .unasked_bytes = unasked_bytes(left, memory.n_models)};
}

// A plan in which experts stay in the file; nullopt if everything fits into memory.
Result<std::optional<KvPlan>> plan_streaming(const std::filesystem::path& model,
                                             const InformedWish& kv, const ContextWish& context,
                                             const MemoryWish& memory, const WeightWish& wish,
                                             bool are_plain) {
  const Result<ModelProfile> streamed =
      read_profile(model, {.streams_experts = true, .are_plain = are_plain});
  if (!streamed) return std::unexpected(streamed.error());
  const std::uint64_t expert_bytes = streamed->weights.experts;
  if (expert_bytes == 0) {
    return fail(Code::kInvalidArgument,
                format_text("{} has no experts that could be streamed: leave out --stream-experts",
                            model.string()));
  }
  if (wish.expert_cache_bytes == 0) {
    const Result<ModelProfile> resident = read_profile(model, {.are_plain = are_plain});
    if (!resident) return std::unexpected(resident.error());
    if (choose_or_check(*resident, kv, context, budget_of(memory), /*has_plugin=*/true)) {
      return std::nullopt;
    }
  }
  const Result<KvChoice> choice =
      choose_or_check(*streamed, kv, context, streaming_budget(memory, wish), /*has_plugin=*/true);
  if (!choice) return std::unexpected(choice.error());
  std::uint64_t cache_bytes = wish.expert_cache_bytes;
  if (cache_bytes == 0) {
    cache_bytes = static_cast<std::uint64_t>(
        kCacheShare * static_cast<double>(memory.available_bytes - needed_bytes(choice->forecast)));
  }
  cache_bytes = std::min(std::max<std::uint64_t>(cache_bytes, 1), expert_bytes + expert_bytes / 8);
  KvPlan plan = plan_of(*streamed, *choice, context);
  plan.experts = std::to_string(cache_bytes);
  plan.total_bytes += cache_bytes;
  return plan;
}

Result<void> check_kv_memory(const KvWish& wish) {
  if (wish.memory_bytes == 0) return {};
  const Result<KvScheme> scheme = parse_kv_scheme(wish.scheme);
  if (!scheme || scheme->attend() == 0) {
    return fail(Code::kInvalidArgument,
                format_text("--kv-memory needs a scheme that limits what is read, such as --kv "
                            "turbo4,attend=4096; with {} all is read for each token",
                            wish.scheme));
  }
  return {};
}

// Whether the plugin's own kernels multiply. If it cannot be tried, stock's do.
bool has_own_products(const std::filesystem::path& model, const WeightWish& wish,
                      const Result<std::filesystem::path>& plugin) {
  if (wish.prompts != "auto") return wish.prompts == "on";
  if (!plugin) return false;
  load_backends();
  const auto trial = try_products(model, *plugin, threads_to_use(wish.n_threads));
  if (!trial) {
    // What is wrong with the file is said by whoever reads it next.
    const Code code = trial.error().code;
    if (code == Code::kUnsupported || code == Code::kOutOfMemory) {
      log::warn("prompts.trial", {{"error", trial.error().message}});
    }
    return false;
  }
  if (!*trial) return false;  // a small model
  log::info("prompts.trial", {{"model", model.filename().string()},
                              {"prompts", format_text("{:.2f}", (*trial)->prompt)},
                              {"decode", format_text("{:.2f}", (*trial)->decode)},
                              {"kernels", (*trial)->pays() ? "own" : "stock"}});
  return (*trial)->pays();
}

}  // namespace

std::string kv_memory_text(std::uint64_t n_bytes, const std::string& directory) {
  if (n_bytes == 0) return {};
  if (directory.empty()) return std::to_string(n_bytes);
  return format_text("{},dir={}", n_bytes, directory);
}

Result<KvPlan> plan_kv(const std::filesystem::path& model, const KvWish& wish,
                       const ContextWish& asked, const MemoryWish& memory,
                       const WeightWish& weights) {
  if (Result<void> checked = check_kv_memory(wish); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  const std::string kv_memory = kv_memory_text(wish.memory_bytes, wish.memory_directory);
  ContextWish context = asked;
  context.shape.kv_memory_bytes = wish.memory_bytes;
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  const bool has_products = has_own_products(model, weights, plugin);
  const bool wants_plugin =
      wish.scheme.starts_with("turbo") || weights.streams_experts || has_products;
  if (wants_plugin && !plugin) return std::unexpected(plugin.error());

  const Result<InformedWish> informed = inform(model, wish, context.rope);
  if (!informed) return std::unexpected(informed.error());
  const InformedWish& kv = *informed;
  load_backends();
  if (weights.streams_experts) {
    Result<std::optional<KvPlan>> streaming =
        plan_streaming(model, kv, context, memory, weights, has_products);
    if (!streaming) return std::unexpected(streaming.error());
    if (*streaming) {
      (*streaming)->plugin = *plugin;
      (*streaming)->has_products = has_products;
      (*streaming)->kv_memory = kv_memory;
      if ((*streaming)->scheme.starts_with("turbo")) (*streaming)->key_profile = kv.key_profile;
      log_choice(model, kv, **streaming);
      return std::move(**streaming);
    }
  }
  const Result<ModelProfile> profile = read_profile(model, {.are_plain = has_products});
  KvPlan plan;
  if (profile) {
    const Result<KvChoice> choice =
        choose_or_check(*profile, kv, context, budget_of(memory), plugin.has_value());
    if (!choice) return std::unexpected(choice.error());
    plan = plan_of(*profile, *choice, context);
  } else if (profile.error().code == Code::kUnsupported) {
    // libllama may know this architecture, but the forecast does not.
    plan = {.scheme = wish.scheme != "auto" ? wish.scheme
                      : plugin              ? "turbo8v4"
                                            : "f16",
            .plugin = {},
            .key_profile = {},
            .experts = {},
            .n_context =
                static_cast<int>(context.shape.n_ctx > 0 ? context.shape.n_ctx : kContextLeast),
            .why_context = context.shape.n_ctx > 0 ? "as asked" : "its own is not known"};
  } else {
    return std::unexpected(profile.error());
  }
  log_choice(model, kv, plan);
  plan.has_products = has_products;
  plan.kv_memory = kv_memory;
  if (plan.scheme.starts_with("turbo")) plan.key_profile = kv.key_profile;
  if (plan.scheme.starts_with("turbo") || has_products) plan.plugin = *plugin;
  return plan;
}

void warn_if_beyond(std::string_view model, const KvPlan& plan) {
  // libllama rounds contexts up.
  if (plan.n_context_own == 0 || plan.n_context < plan.n_context_own + kContextStep) return;
  log::warn(
      "kv.context_beyond",
      {{"model", model},
       {"tokens", plan.n_context},
       {"trained", plan.n_context_own},
       {"advice", format_text("a request of more than {} tokens reads badly, unless positions are "
                              "scaled: --rope-scaling yarn --rope-scale {}",
                              plan.n_context_own,
                              (plan.n_context + plan.n_context_own - 1) / plan.n_context_own)}});
}

}  // namespace slipstream
