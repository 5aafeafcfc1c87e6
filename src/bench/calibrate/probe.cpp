#include "bench/calibrate/probe.h"

#include <llama.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "bench/calibrate/evidence_json.h"
#include "bench/quality/divergence_pass.h"
#include "bench/quality/plain_text.h"
#include "engine/forecast/memory_forecast.h"
#include "engine/text/vocabulary.h"

namespace slipstream::calibrate {
namespace {

constexpr int kStepTokens = 512;
// "turbo0v0" is f16 on the plugin's device.
constexpr const char* kPlain = "turbo0v0";
constexpr const char* kFinest = "turbo8";
// Schemes that users name, if the model can have them. --kv refuses those that turn out
// to be broken.
constexpr std::array kNamed = {"turbo8v4", "turbo4", "turbo3", "turbo2", "q8_0", "q4_0"};
constexpr std::array kWidths = {4, 3, 2};
constexpr int kFittedBitsMin = 3;  // keys with fewer bits are never fitted
constexpr const char* kKeysWithCentre = "turbo4v0";

using quality::DivergenceFigures;
using quality::Tokens;

class Probe {
 public:
  Probe(const ProbeTask& task, const bench::OnProgress& on_progress)
      : task_(task), on_progress_(on_progress) {}

  Result<ProbeResult> run() {
    for (const auto step :
         {&Probe::read_layers, &Probe::open, &Probe::fit_keys, &Probe::record_f16,
          &Probe::look_for_offset, &Probe::measure_named, &Probe::measure_groups}) {
      if (const Result<void> done = (this->*step)(); !done) return std::unexpected(done.error());
    }
    return std::move(result_);
  }

 private:
  Result<void> read_layers() {
    load_backends();
    Result<ModelProfile> profile = read_profile(task_.model);
    if (!profile) return std::unexpected(profile.error());
    geometry_ = std::move(profile->geometry);
    result_.groups = group_layers(geometry_, task_.n_layers_together);
    if (result_.groups.empty()) {
      return fail(Code::kUnsupported,
                  "no layer of this model can be compressed: it has nothing to calibrate");
    }
    if (geometry_.n_ctx_train > 0 && task_.depth > geometry_.n_ctx_train) {
      return fail(Code::kInvalidArgument,
                  format_text("the model was trained for {} tokens: --depth {} is more than that",
                              geometry_.n_ctx_train, task_.depth));
    }
    return {};
  }

  // Loads the model with a turbo scheme, from which change_kv() can switch to any other.
  Result<void> open() {
    Result<Model> model = Model::load({.path = task_.model,
                                       .kv = kPlain,
                                       .plugin = task_.plugin,
                                       .has_products = task_.has_products,
                                       .n_cells = task_.depth,
                                       .n_step_tokens_max = kStepTokens,
                                       .n_outputs_max = kStepTokens,
                                       .n_threads = task_.n_threads,
                                       .on_progress = {}});
    if (!model) return std::unexpected(model.error());
    const Result<std::string> text = quality::text_or_ours(task_.text);
    if (!text) return std::unexpected(text.error());
    const Result<Vocabulary> vocabulary = Vocabulary::create(model->model());
    if (!vocabulary) return std::unexpected(vocabulary.error());
    const Result<Tokens> tokens = vocabulary->tokenize(*text, true, false);
    if (!tokens) return std::unexpected(tokens.error());
    std::optional<Token> begin;
    if (llama_vocab_get_add_bos(model->vocab())) begin = vocabulary->bos();
    Result<std::vector<Tokens>> chunks =
        quality::cut(*tokens, task_.depth, n_measured_anywhere() + in_chunks(kFitTokens), begin);
    if (!chunks) return std::unexpected(chunks.error());
    chunks_ = std::move(*chunks);
    split_chunks();
    result_.depth = task_.depth;
    result_.n_chunks = static_cast<int>(chunks_.size());
    model_ = std::make_unique<Model>(std::move(*model));
    return {};
  }

  [[nodiscard]] int in_chunks(int n_tokens) const {
    return (n_tokens + task_.depth - 1) / task_.depth;
  }
  // The chunks that are measured, here or by trials.
  [[nodiscard]] int n_measured_anywhere() const {
    return std::max(task_.n_chunks, in_chunks(task_.n_trial_tokens));
  }

  // The first chunks are measured, and keys are fitted to those that nobody measures. A text too
  // short for both is used for both.
  void split_chunks() {
    const auto part = [this](int n) {
      return chunks_.begin() +
             static_cast<std::ptrdiff_t>(std::min(chunks_.size(), static_cast<std::size_t>(n)));
    };
    fit_chunks_.assign(part(n_measured_anywhere()), chunks_.end());
    if (fit_chunks_.empty()) fit_chunks_.assign(part(task_.n_chunks), chunks_.end());
    chunks_.erase(part(task_.n_chunks), chunks_.end());
    if (fit_chunks_.empty()) fit_chunks_ = chunks_;
  }

  Result<void> fit_keys() {
    if (Result<void> begun = model_->turbo()->begin_fitting_keys(task_.key_profile); !begun)
      return begun;
    const auto ignore = [](std::span<const float>, Token) -> Result<void> { return {}; };
    for (const Tokens& chunk : fit_chunks_) {
      if (Result<void> read = quality::read_chunk(*model_, chunk, kStepTokens, ignore); !read) {
        return read;
      }
      result_.key_fitting.n_tokens += static_cast<int>(chunk.size());
      tell(1.0 / result_.n_chunks);
      n_passes_ += 1.0 / result_.n_chunks;
    }
    const Result<int> n_layers = model_->turbo()->end_fitting_keys();
    if (!n_layers) return std::unexpected(n_layers.error());
    result_.key_fitting.n_layers = *n_layers;
    result_.key_fitting.has_all =
        *n_layers >= std::ranges::count_if(geometry_.attention, can_compress);
    return {};
  }

  Result<void> record_f16() {
    const Result<double> perplexity = quality::record_base(
        *model_, chunks_, kStepTokens, base_path(), [this](double done) { tell(done); });
    if (!perplexity) return std::unexpected(perplexity.error());
    ++n_passes_;
    return {};
  }

  Result<DivergenceFigures> pass(const std::string& kv) {
    if (const Result<void> changed = model_->change_kv(kv); !changed) {
      return std::unexpected(changed.error());
    }
    Result<DivergenceFigures> figures = quality::measure(*model_, chunks_, kStepTokens, base_path(),
                                                         [this](double done) { tell(done); });
    ++n_passes_;
    return figures;
  }

  // From here on, what was fitted to keys is used. The offset is searched for without it.
  Result<void> measure_named() {
    if (result_.key_fitting.n_layers > 0) model_->change_key_profile(task_.key_profile);
    const Result<DivergenceFigures> finest = pass(kFinest);
    if (!finest) return std::unexpected(finest.error());
    result_.n_tokens = finest->n_tokens;
    result_.finest = {.kv = kFinest, .kl = finest->kl_mean, .same_top = finest->same_top};
    for (const char* kv : kNamed) {
      if (!check_scheme(geometry_, kv)) continue;
      const Result<DivergenceFigures> figures = pass(kv);
      if (!figures) return std::unexpected(figures.error());
      result_.schemes.push_back({.kv = kv, .kl = figures->kl_mean, .same_top = figures->same_top});
    }
    return {};
  }

  Result<void> look_for_offset() {
    if (!check_scheme(geometry_, kKeysWithoutCentre)) return {};  // nothing to compare with
    const Result<DivergenceFigures> with = pass(kKeysWithCentre);
    if (!with) return std::unexpected(with.error());
    const Result<DivergenceFigures> without = pass(kKeysWithoutCentre);
    if (!without) return std::unexpected(without.error());
    result_.key_offset = {
        .kl_with_centre = with->kl_mean,
        .kl_without_centre = without->kl_mean,
        .is_large = without->kl_mean > kLargeOffsetRatio * std::max(with->kl_mean, 0.0)};
    return {};
  }

  Result<void> measure_groups() {
    for (LayerGroup& group : result_.groups) {
      for (const bool is_key : {true, false}) {
        if (const auto measured = measure_side(group, is_key); !measured) return measured;
      }
    }
    return {};
  }

  Result<void> measure_side(LayerGroup& group, bool is_key) {
    std::vector<WidthOption>& options = is_key ? group.keys : group.values;
    options.front().bytes_per_token = bytes_of(group, is_key, 8);
    const bool must_fit = is_key && result_.key_offset.is_large;
    if (must_fit && !result_.key_fitting.has_all) return {};
    for (const int bits : kWidths) {
      if (must_fit && bits < kFittedBitsMin) break;
      if (options.back().kl > task_.budget) break;  // fewer bits cost more
      const Result<DivergenceFigures> figures =
          pass(with_group(kFinest, group, one_side(is_key, bits, 8)));
      if (!figures) return std::unexpected(figures.error());
      options.push_back({.bits = bits,
                         .kl = std::max(0.0, figures->kl_mean - result_.finest.kl),
                         .bytes_per_token = bytes_of(group, is_key, bits)});
    }
    return {};
  }

  static turbo::Bits one_side(bool is_key, int bits, int of_the_other) {
    return is_key ? turbo::Bits{.keys = bits, .values = of_the_other}
                  : turbo::Bits{.keys = of_the_other, .values = bits};
  }

  static std::string with_group(std::string_view rest, const LayerGroup& group, turbo::Bits bits) {
    return format_text("{},{}-{}={}", rest, group.first_layer, group.last_layer, scheme_of(bits));
  }

  // The bytes of a group's keys or values: their f16 size, less what coding them saves.
  [[nodiscard]] double bytes_of(const LayerGroup& group, bool is_key, int bits) const {
    const auto bytes = [this](const std::string& kv) {
      const Result<KvScheme> scheme = parse_kv_scheme(kv);
      return scheme ? bytes_per_token(geometry_, *scheme) : 0.0;
    };
    double f16 = 0;
    for (const AttentionLayer& layer : geometry_.attention) {
      if (layer.layer < group.first_layer || layer.layer > group.last_layer) continue;
      if (!can_compress(layer)) continue;
      f16 += 2.0 * static_cast<double>(is_key ? layer.key_channels : layer.value_channels);
    }
    return f16 + bytes(with_group(kPlain, group, one_side(is_key, bits, 0))) - bytes(kPlain);
  }

  void tell(double part) const {
    const double n_all = static_cast<double>(fit_chunks_.size()) / result_.n_chunks + 1 + 1 +
                         kNamed.size() + 2 +
                         static_cast<double>(2 * kWidths.size() * result_.groups.size());
    on_progress_((n_passes_ + part) / n_all);
  }

  [[nodiscard]] std::string base_path() const { return task_.directory + "/probe-base"; }

  const ProbeTask& task_;
  const bench::OnProgress& on_progress_;
  ModelGeometry geometry_;
  std::vector<Tokens> chunks_;
  std::vector<Tokens> fit_chunks_;
  std::unique_ptr<Model> model_;
  double n_passes_ = 0;
  ProbeResult result_;
};

}  // namespace

Result<ProbeResult> probe(const ProbeTask& task, const bench::OnProgress& on_progress) {
  return Probe(task, on_progress).run();
}

int answer_as_probe() {
  return bench::answer_parent([](const nlohmann::json& task,
                                 const bench::OnProgress& on_progress) -> Result<nlohmann::json> {
    const Result<ProbeResult> result = probe(task.get<ProbeTask>(), on_progress);
    if (!result) return std::unexpected(result.error());
    return nlohmann::json(*result);
  });
}

}  // namespace slipstream::calibrate
