#include "bench/calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "base/format.h"
#include "bench/calibrate/attend_limits.h"
#include "bench/calibrate/evidence_json.h"
#include "bench/calibrate/probe.h"
#include "bench/quality/needles.h"
#include "bench/quality/suite.h"
#include "engine/forecast/memory_forecast.h"
#include "engine/forecast/product_trial.h"
#include "engine/model/model.h"

namespace slipstream::calibrate {
namespace {

constexpr int kTrialsMax = 6;
// The share of the budget that remains after a trial failed for a reason other than its divergence.
constexpr double kStepBack = 0.7;
// If divergences did not add up as expected, the budget shrinks by a little more
// than the difference.
constexpr double kMargin = 0.95;
// The share of the budget that bits get if a query is to read a part of the tokens, too.
constexpr double kShareOfBits = 0.5;
constexpr const char* kFinestScheme = "turbo8";

class Calibration {
 public:
  Calibration(const Options& options, const OnStage& on_stage)
      : options_(options),
        on_stage_(on_stage),
        budget_of_bits_(options.budget * (options.finds_attend ? kShareOfBits : 1)) {
    suite_.arm.model = options.model;
    suite_.arm.plugin = options.plugin;
    suite_.arm.text = options.text;
    suite_.arm.base_directory = options.scratch;
    suite_.arm.n_chunks = options.n_chunks;
    suite_.arm.n_needle_texts = options.n_needle_texts;
    suite_.arm.needle_kinds = {"several", "paraphrased"};  // of one text
    suite_.arm.n_decoded = options.finds_attend ? quality::kDecodedTokens : 0;
    suite_.arm.n_threads = options.n_threads;
    suite_.arm_command = options.arm_command;
  }

  Result<Evidence> run() {
    const auto started = std::chrono::steady_clock::now();
    for (const auto step :
         {&Calibration::read_sizes, &Calibration::choose_kernels, &Calibration::probe_layers,
          &Calibration::read_f16, &Calibration::find_scheme, &Calibration::find_limit}) {
      if (const Result<void> done = (this->*step)(); !done) return std::unexpected(done.error());
    }
    evidence_.budget = options_.budget;
    evidence_.bytes_per_token = bytes(evidence_.chosen);
    evidence_.bytes_per_token_f16 = bytes("f16");
    evidence_.bytes_per_token_turbo8v4 = bytes("turbo8v4");
    evidence_.reason = reason();
    const auto took = std::chrono::steady_clock::now() - started;
    evidence_.seconds = std::chrono::duration<double>(took).count();
    return std::move(evidence_);
  }

 private:
  Result<void> read_sizes() {
    load_backends();
    Result<ModelProfile> profile = read_profile(options_.model);
    if (!profile) return std::unexpected(profile.error());
    geometry_ = std::move(profile->geometry);
    depths_ = options_.depths;
    if (depths_.empty()) {
      std::vector<int> depths(kDefaultDepths.begin(), kDefaultDepths.end());
      if (options_.finds_attend) {
        depths.back() =
            geometry_.n_ctx_train == 0
                ? kAttendDepth
                : static_cast<int>(std::min<std::int64_t>(kAttendDepth, geometry_.n_ctx_train));
      }
      std::ranges::copy_if(depths, std::back_inserter(depths_), [this](int depth) {
        return geometry_.n_ctx_train == 0 || depth <= geometry_.n_ctx_train;
      });
    }
    if (depths_.empty()) {
      return fail(Code::kInvalidArgument,
                  format_text("the model was trained for {} tokens only: give a smaller --depth",
                              geometry_.n_ctx_train));
    }
    suite_.arm.depths = depths_;
    if (options_.finds_attend && attend_limits(std::ranges::max(depths_)).empty()) {
      return fail(
          Code::kInvalidArgument,
          format_text("the least that a query can be limited to are {} tokens: measure what "
                      "that does at a --depth of {} or more",
                      turbo::kAttendMin, 2 * turbo::kAttendMin));
    }
    return {};
  }

  // Most of the time goes into products with weights. A trial that fails is no reason to stop.
  Result<void> choose_kernels() {
    suite_.arm.has_products = options_.prompts == "on";
    if (options_.prompts == "auto") {
      const Result<std::optional<ProductTrial>> trial =
          try_products(options_.model, options_.plugin, threads_to_use(options_.n_threads));
      suite_.arm.has_products = trial && *trial && (*trial)->pays();
    }
    if (suite_.arm.has_products) {
      evidence_.notes.emplace_back("prompts were read by slipstream's own kernels");
    }
    return {};
  }

  [[nodiscard]] double bytes(std::string_view kv) const {
    const Result<KvScheme> scheme = parse_kv_scheme(kv);
    return scheme ? bytes_per_token(geometry_, *scheme) : 0;
  }

  Result<void> probe_layers() {
    const ProbeTask task{.model = options_.model,
                         .plugin = options_.plugin,
                         .text = options_.text,
                         .directory = options_.scratch,
                         .key_profile = options_.key_profile,
                         .depth = depths_.front(),
                         .n_chunks = n_probe_chunks(),
                         .n_trial_tokens = options_.n_chunks * std::ranges::max(depths_),
                         .n_layers_together = options_.n_layers_together,
                         .n_threads = options_.n_threads,
                         .has_products = suite_.arm.has_products,
                         .budget = budget_of_bits_};
    const Result<nlohmann::json> answer =
        bench::ask_child(options_.probe_command, task, stage("measuring layers", probe_weight()));
    if (!answer) return std::unexpected(answer.error());
    try {
      evidence_.probe = answer->get<ProbeResult>();
    } catch (const nlohmann::json::exception& error) {
      return fail(Code::kCorrupt, format_text("a probe cannot be read: {}", error.what()));
    }
    if (evidence_.probe.key_fitting.n_layers > 0) suite_.arm.key_profile = options_.key_profile;
    if (const Result<void> checked = check_scheme(geometry_, kKeysWithoutCentre); !checked) {
      evidence_.notes.push_back(
          format_text("keys were not searched for a large offset: {}", checked.error().message));
    }
    return {};
  }

  Result<void> read_f16() {
    suite_.arm.tasks = {"divergence", "needles"};
    Result<quality::ArmResult> found =
        run_arm_in_child(suite_, "f16", stage("asking f16", divergence_weight() + needle_weight()));
    if (!found) return std::unexpected(found.error());
    f16_ = std::move(*found);
    evidence_.depths = f16_.depths;
    evidence_.notes.append_range(f16_.notes);
    if (!f16_.needles.empty() && !f16_finds_needles()) {
      evidence_.notes.emplace_back(
          "f16 itself finds no needle: schemes are judged by their divergence alone");
    }
    return {};
  }

  Result<void> find_scheme() {
    double share = 1;
    std::string last;
    while (evidence_.trials.size() < kTrialsMax && share > 0.01) {
      const WidthChoice choice = choose_widths(evidence_.probe.groups,
                                               share * budget_of_bits_ - evidence_.probe.finest.kl);
      const std::string kv = scheme_of(choice.groups);
      if (kv == last) {  // a smaller share of the budget gave the same scheme
        share *= kStepBack;
        continue;
      }
      last = kv;
      const Result<Trial> trial = try_scheme(kv, evidence_.probe.finest.kl + choice.kl);
      if (!trial) return std::unexpected(trial.error());
      if (trial->objection.empty()) return take(kv, choice);
      if (kv == kFinestScheme) break;
      share *= trial->kl > budget_of_bits_ ? kMargin * budget_of_bits_ / trial->kl : kStepBack;
    }
    return take_finest();
  }

  // What was found of a scheme, all depths together and each alone.
  struct Findings {
    Trial trial;
    std::vector<DepthEvidence> at = {};
  };

  Result<Trial> try_scheme(const std::string& kv, double kl_expected) {
    Result<Findings> found = measure_scheme(kv, budget_of_bits_);
    if (!found) return std::unexpected(found.error());
    found->trial.kl_expected = kl_expected;
    evidence_.trials.push_back(found->trial);
    last_tried_ = std::move(found->at);
    return std::move(found->trial);
  }

  Result<Findings> measure_scheme(const std::string& kv, double budget) {
    Findings found{.trial = {.kv = kv}};
    if (const auto done = try_task("divergence", divergence_weight(), budget, found); !done) {
      return std::unexpected(done.error());
    }
    // Needles take several times as long, and cannot rescue a scheme that exceeds the budget.
    if (found.trial.objection.empty() && f16_finds_needles()) {
      if (const auto done = try_task("needles", needle_weight(), budget, found); !done) {
        return std::unexpected(done.error());
      }
    }
    return found;
  }

  // The least limit first, so that the report has the curve up to the one that is taken. Unlike
  // those of layers, divergences of limits cannot be foretold: each is tried.
  Result<void> find_limit() {
    if (!options_.finds_attend) return {};
    AttendEvidence attend{.depth_max = std::ranges::max(depths_)};
    attend.trials.push_back({.kv = evidence_.chosen, .at = last_tried_});
    for (const std::int64_t limit : attend_limits(attend.depth_max)) {
      if (evidence_.chosen == "f16") break;
      const std::string kv = format_text("{},attend={}", evidence_.chosen, limit);
      Result<Findings> found = measure_scheme(kv, options_.budget);
      if (!found) return std::unexpected(found.error());
      attend.bytes_per_token = bytes(kv);
      attend.trials.push_back({.kv = kv,
                               .attend = limit,
                               .at = std::move(found->at),
                               .objection = std::move(found->trial.objection)});
      if (!attend.trials.back().objection.empty()) continue;
      attend.chosen = kv;
      break;
    }
    attend.reason = attend_reason(attend);
    evidence_.attend = std::move(attend);
    evidence_.notes.push_back(
        format_text("bits were chosen within a divergence of {}, half of the budget: the rest is "
                    "for reading a part of the tokens",
                    budget_of_bits_));
    return {};
  }

  Result<void> try_task(const char* task, double weight, double budget, Findings& into) {
    Trial& trial = into.trial;
    suite_.arm.tasks = {task};
    const Result<quality::ArmResult> found = run_arm_in_child(
        suite_, trial.kv, stage(format_text("trying {}: {}", trial.kv, task), weight));
    if (!found) return std::unexpected(found.error());
    trial.objection = objection_to(*found, f16_, budget, trial);
    add_findings(*found, f16_, into.at);
    return {};
  }

  [[nodiscard]] bool f16_finds_needles() const {
    return std::ranges::any_of(f16_.needles, &quality::NeedleAnswer::right);
  }

  Result<void> take(const std::string& kv, const WidthChoice& choice) {
    evidence_.chosen = kv;
    evidence_.groups = choice.groups;
    return {};
  }

  // Takes 8 bits, unless there is an objection even to these. A lost needle is none: at a divergence
  // far below that of any other scheme, f16 itself answers that question only by chance.
  Result<void> take_finest() {
    if (evidence_.trials.back().kv != kFinestScheme) {
      const Result<Trial> trial = try_scheme(kFinestScheme, evidence_.probe.finest.kl);
      if (!trial) return std::unexpected(trial.error());
    }
    Trial& trial = evidence_.trials.back();
    if (!trial.objection.empty() && !lost_needles_only(trial)) {
      evidence_.chosen = "f16";
      return {};
    }
    if (!trial.objection.empty()) {
      evidence_.notes.push_back(format_text("turbo8 is taken although {}", trial.objection));
      trial.objection.clear();
    }
    return take(kFinestScheme, choose_widths(evidence_.probe.groups, 0));
  }

  [[nodiscard]] std::string reason() const {
    std::string text;
    const KeyOffset& offset = evidence_.probe.key_offset;
    if (offset.is_large && evidence_.chosen != "f16") {
      text = format_text(
          "keys keep {}: they have a large offset, which codes that are not fitted represent only "
          "while the centre taken from a text's first rows fits (KL divergence {:.4f} at 4 bits; "
          "{:.4f} with stock's q4_0 keys, which have no centre). ",
          evidence_.probe.key_fitting.has_all ? "as many bits as can be fitted, at least 3"
                                              : "8 bits",
          offset.kl_with_centre, offset.kl_without_centre);
    }
    if (evidence_.chosen == "f16") {
      const Trial& rejected = evidence_.trials.back();
      return text + format_text("Even {} was rejected: {}.", rejected.kv, rejected.objection);
    }
    if (evidence_.trials.size() > 1) {
      const Trial& rejected = evidence_.trials[evidence_.trials.size() - 2];
      return text +
             format_text("A smaller one, {}, was tried: {}.", rejected.kv, rejected.objection);
    }
    return text + format_text(
                      "The smallest whose divergence, layer by layer, adds up to no more "
                      "than the budget of {}.",
                      budget_of_bits_);
  }

  // Layers are only compared with each other, and what follows from it is tried on all chunks.
  [[nodiscard]] int n_probe_chunks() const { return std::max(1, options_.n_chunks / 2); }

  // Parts are weighted by the tokens they take.
  bench::OnProgress stage(std::string what, double weight) {
    const double from = std::exchange(done_, done_ + weight);
    return [this, what = std::move(what), from, weight](double part) {
      // f16 and one trial are certain, and one with a limit if that was asked for; further trials
      // add to this.
      const double n_trials = options_.finds_attend ? 3 : 2;
      const double all =
          std::max(done_, probe_weight() + n_trials * (divergence_weight() + needle_weight()));
      on_stage_((from + part * weight) / all, what);
    };
  }
  [[nodiscard]] double probe_weight() const {
    const double n_groups =
        static_cast<double>(group_layers(geometry_, options_.n_layers_together).size());
    return kFitTokens + (10 + 6 * n_groups) * n_probe_chunks() * depths_.front();
  }
  // A token that is computed alone takes about as long as ten of a prompt.
  [[nodiscard]] double divergence_weight() const {
    const auto n_depths = static_cast<double>(depths_.size());
    return (depth_sum() + 10.0 * suite_.arm.n_decoded * n_depths) * options_.n_chunks;
  }
  [[nodiscard]] double needle_weight() const {
    return depth_sum() *
           quality::n_needle_texts_read(suite_.arm.needle_kinds, options_.n_needle_texts);
  }
  [[nodiscard]] double depth_sum() const {
    return std::accumulate(depths_.begin(), depths_.end(), 0.0);
  }

  const Options& options_;
  const OnStage& on_stage_;
  ModelGeometry geometry_;
  std::vector<int> depths_;
  quality::SuiteOptions suite_;
  double budget_of_bits_;
  quality::ArmResult f16_;
  std::vector<DepthEvidence> last_tried_;
  double done_ = 0;
  Evidence evidence_;
};

}  // namespace

Result<Evidence> calibrate(const Options& options, const OnStage& on_stage) {
  return Calibration(options, on_stage).run();
}

}  // namespace slipstream::calibrate
