#include "engine/forecast/memory_forecast.h"

#include "base/format.h"
#include "base/format_bytes.h"

namespace slipstream {
namespace {

// Far more than any machine holds; keeps products within 64 bits.
constexpr std::int64_t kContextMax = 1 << 28;
constexpr std::int64_t kBatchMax = 1 << 20;
constexpr std::int64_t kCountMax = 1 << 12;  // sequences, threads

Result<ContextShape> checked(const ContextShape& shape, const ModelGeometry& geometry) {
  ContextShape checked = shape;
  if (checked.n_ctx == 0) checked.n_ctx = geometry.n_ctx_train;
  if (checked.n_ctx == 0) {
    return fail(Code::kInvalidArgument,
                "the model does not say for what context it was trained: name one");
  }
  if (checked.n_ctx < 0 || checked.n_ctx > kContextMax) {
    return fail(Code::kInvalidArgument,
                format_text("no context has {} tokens: 1 to {}", checked.n_ctx, kContextMax));
  }
  if (shape.n_ubatch < 1 || shape.n_ubatch > kBatchMax || shape.n_sequences_max < 1 ||
      shape.n_sequences_max > kCountMax || shape.n_threads < 1 || shape.n_threads > kCountMax) {
    return fail(Code::kInvalidArgument,
                format_text("no context has {} sequences, batches of {} and {} threads",
                            shape.n_sequences_max, shape.n_ubatch, shape.n_threads));
  }
  checked.n_ctx = (checked.n_ctx + kContextStep - 1) / kContextStep * kContextStep;
  return checked;
}

}  // namespace

Result<ModelProfile> read_profile(const std::filesystem::path& path, const WeightUse& weights_use) {
  const Result<GgufModel> model = GgufModel::open(path);
  if (!model) return std::unexpected(model.error());
  Result<ModelGeometry> geometry = read_geometry(*model);
  if (!geometry) {
    return fail(geometry.error().code,
                format_text("{}: {}", path.string(), geometry.error().message));
  }
  const Result<WeightBytes> weights = weight_bytes(*model, geometry->n_experts_used, weights_use);
  if (!weights) return std::unexpected(weights.error());
  return ModelProfile{.geometry = std::move(*geometry), .weights = *weights};
}

Result<MemoryForecast> forecast(const ModelProfile& profile, const KvScheme& scheme,
                                const ContextShape& shape) {
  const ModelGeometry& geometry = profile.geometry;
  const Result<ContextShape> context = checked(shape, geometry);
  if (!context) return std::unexpected(context.error());
  if (const Result<void> fits = check_cache(geometry, scheme); !fits) {
    return std::unexpected(fits.error());
  }
  return MemoryForecast{.scheme = scheme.name(),
                        .n_ctx = context->n_ctx,
                        .weights_bytes = profile.weights.copied + profile.weights.mapped,
                        .kv_bytes = cache_bytes(geometry, scheme, *context),
                        .compute_bytes = compute_bytes(geometry, *context),
                        .other_bytes = notes_bytes(geometry, scheme, *context),
                        .idle_bytes = profile.weights.idle};
}

Result<MemoryForecast> forecast(const std::filesystem::path& path, const KvScheme& scheme,
                                const ContextShape& shape) {
  const Result<ModelProfile> profile = read_profile(path);
  if (!profile) return std::unexpected(profile.error());
  return forecast(*profile, scheme, shape);
}

std::string describe(const MemoryForecast& forecast) {
  const auto line = [](std::string_view what, std::uint64_t n_bytes, std::string_view about) {
    return format_text("{:<9}{:>8}{}{}\n", what, format_bytes(n_bytes), about.empty() ? "" : "  ",
                       about);
  };
  std::string text = line("weights", forecast.weights_bytes, "");
  text += line("KV cache", forecast.kv_bytes,
               format_text("{} tokens, {}", forecast.n_ctx, forecast.scheme));
  text += line("compute", forecast.compute_bytes, "results of a batch");
  text += line("other", forecast.other_bytes, "vocabulary, notes, threads");
  text += line("total", forecast.total(), "");
  if (forecast.idle_bytes > 0) {
    text +=
        line("and", forecast.idle_bytes, "of the file, only while nobody else wants the memory");
  }
  return text;
}

}  // namespace slipstream
