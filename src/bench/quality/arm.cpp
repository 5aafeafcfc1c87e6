#include "bench/quality/arm.h"

#include <llama.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "bench/quality/drift.h"
#include "bench/quality/hay.h"
#include "bench/quality/needles.h"
#include "bench/quality/plain_text.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream::quality {
namespace {

// The same step as llama-perplexity, so that rounding is the same.
constexpr int kStepTokens = 512;
// Room beside the text of a question: the answer, and tokens that a chat template adds.
constexpr int kRoomForAnswer = 256;
// Templates describe a tool in a few hundred tokens.
constexpr int kCellsMin = 1024;
constexpr RunnerOptions kRunner{.n_sequences_max = 1, .n_prefixes_max = 4};

class Arm {
 public:
  Arm(const ArmOptions& options, const OnArmProgress& on_progress)
      : options_(options), on_progress_(on_progress) {}

  Result<ArmResult> run() {
    const auto started = std::chrono::steady_clock::now();
    if (const auto opened = open(); !opened) return std::unexpected(opened.error());
    if (const auto measured = measure_divergence(); !measured) {
      return std::unexpected(measured.error());
    }
    llama_memory_clear(llama_get_memory(model_->context()), true);
    const Result<std::unique_ptr<Engine>> engine =
        Engine::start(std::move(*model_), {.runner = kRunner});
    if (!engine) return std::unexpected(engine.error());
    for (auto trial : {&Arm::ask_questions, &Arm::drift, &Arm::work}) {
      if (const auto tried = (this->*trial)(**engine); !tried) {
        return std::unexpected(tried.error());
      }
    }
    const auto took = std::chrono::steady_clock::now() - started;
    result_.seconds = std::chrono::duration<double>(took).count();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool wants(std::string_view task) const {
    return std::ranges::contains(options_.tasks, task);
  }

  Result<Model> load(int n_cells) const {
    return Model::load({.path = options_.model,
                        .kv = options_.kv,
                        .plugin = options_.plugin,
                        .has_products = options_.has_products,
                        .key_profile = options_.key_profile,
                        .n_cells = n_cells,
                        .n_sequences_max = kRunner.n_sequence_ids(),
                        .n_step_tokens_max = kStepTokens,
                        .n_outputs_max = kStepTokens,
                        .n_threads = options_.n_threads,
                        .on_progress = {}});
  }

  // Loads the model with a context for the deepest trial, and tokenizes the text.
  Result<void> open() {
    const Result<std::string> text = text_or_ours(options_.text);
    if (!text) return std::unexpected(text.error());
    const auto& wished = options_.depths;
    const int deepest = wished.empty() ? kDefaultDepths.back() : std::ranges::max(wished);
    if (const auto fits = check_trained(wished.empty() ? 0 : deepest); !fits) return fits;
    const int n_drift = DriftOptions().n_prompt_tokens + options_.n_drift_tokens;
    Result<Model> model = load(std::max({deepest + kRoomForAnswer, n_drift, kCellsMin}));
    if (!model) return std::unexpected(model.error());
    Result<Vocabulary> vocabulary = Vocabulary::create(model->model());
    if (!vocabulary) return std::unexpected(vocabulary.error());
    Result<Tokens> tokens = vocabulary->tokenize(*text, true, false);
    if (!tokens) return std::unexpected(tokens.error());
    tokens_ = std::move(*tokens);
    if (llama_vocab_get_add_bos(model->vocab())) begin_ = vocabulary->bos();
    model_ = std::make_unique<Model>(std::move(*model));
    vocabulary_ = std::make_unique<Vocabulary>(std::move(*vocabulary));
    return choose_depths();
  }

  // Checked before the model is loaded with memory for such a depth.
  Result<void> check_trained(int deepest) {
    const Result<GgufModel> header = GgufModel::open(options_.model);
    if (!header) return std::unexpected(header.error());
    constexpr std::int64_t kUnknown = 1 << 20;
    n_trained_ = static_cast<int>(
        std::min(kUnknown, header->integer("%s.context_length").value_or(kUnknown)));
    if (deepest <= n_trained_) return {};
    return fail(Code::kInvalidArgument,
                format_text("the model was trained for {} tokens: --depth {} is more than that",
                            n_trained_, deepest));
  }

  Result<void> choose_depths() {
    const auto n_text = static_cast<int>(std::min<std::size_t>(tokens_.size(), 1 << 30));
    if (options_.depths.empty()) {
      std::ranges::copy_if(kDefaultDepths, std::back_inserter(result_.depths),
                           [&](int depth) { return depth <= n_trained_ && depth <= n_text; });
      if (result_.depths.size() < kDefaultDepths.size()) {
        result_.notes.push_back(format_text(
            "depths above {} tokens are left out: the model was trained for {}, the text has {}",
            std::min(n_trained_, n_text), n_trained_, n_text));
      }
    } else {
      result_.depths = options_.depths;
    }
    if (result_.depths.empty()) {
      return fail(
          Code::kInvalidArgument,
          format_text("the text has {} tokens: give one of {} or more, or a smaller --depth",
                      n_text, kDefaultDepths.front()));
    }
    return {};
  }

  // Reports the current work as a part of all work. Parts are weighted by the tokens they take.
  OnProgress stage(std::string_view what, double weight) {
    const double from = std::exchange(done_, done_ + weight);
    return [this, what, from, weight](double part) {
      on_progress_((from + part * weight) / total_weight(), what);
    };
  }
  [[nodiscard]] double depth_sum() const {
    double sum = 0;
    for (const int depth : result_.depths) sum += depth;
    return sum;
  }
  // A generated token takes about as long as ten tokens of a prompt.
  [[nodiscard]] double divergence_weight() const {
    const int n_decoded = options_.kv == "f16" ? 0 : options_.n_decoded;
    const auto n_depths = static_cast<double>(result_.depths.size());
    return (depth_sum() + 10.0 * n_decoded * n_depths) * options_.n_chunks;
  }
  // Questions on a text that was read take little.
  [[nodiscard]] double needle_weight() const {
    return depth_sum() * n_needle_texts_read(options_.needle_kinds, options_.n_needle_texts);
  }
  [[nodiscard]] double tool_weight() const { return 500.0 * options_.n_tool_calls; }
  [[nodiscard]] double schema_weight() const { return 4000; }
  [[nodiscard]] double drift_weight() const {
    return 10.0 * options_.n_drift_prompts * options_.n_drift_tokens;
  }
  [[nodiscard]] double work_weight() const { return 600.0 * options_.n_work_tasks; }
  [[nodiscard]] double total_weight() const {
    return (wants("divergence") ? divergence_weight() : 0) +
           (wants("needles") ? needle_weight() : 0) +
           (wants("tools") ? tool_weight() + schema_weight() : 0) +
           (wants("drift") ? drift_weight() : 0) +
           static_cast<double>(std::ranges::count_if(
               kWorkKinds, [this](std::string_view kind) { return wants(kind); })) *
               work_weight();
  }

  Result<void> measure_divergence() {
    if (!wants("divergence")) return {};
    const double all = depth_sum();
    for (const int depth : result_.depths) {
      const Result<std::vector<Tokens>> chunks = cut(tokens_, depth, options_.n_chunks, begin_);
      if (!chunks) return std::unexpected(chunks.error());
      const std::string base = format_text("{}/base-{}", options_.base_directory, depth);
      const OnProgress progress = stage("divergence", divergence_weight() * depth / all);
      DepthFigures figures{.depth = depth, .n_chunks = static_cast<int>(chunks->size())};
      if (options_.kv == "f16") {
        const Result<double> perplexity =
            record_base(*model_, *chunks, kStepTokens, base, progress);
        if (!perplexity) return std::unexpected(perplexity.error());
        figures.perplexity = *perplexity;
      } else {
        const int n_decoded = std::min(options_.n_decoded, n_scored(depth) / 2);
        const auto measured =
            measure_decoding(*model_, *chunks, kStepTokens, n_decoded, base, progress);
        if (!measured) return std::unexpected(measured.error());
        figures.divergence = measured->all;
        figures.decoded = measured->decoded;
        figures.perplexity = measured->all.perplexity;
      }
      if (depth == result_.depths.front()) {
        if (const auto looked = look_at_rows(figures.rows); !looked) return looked;
      }
      result_.divergence.push_back(figures);
    }
    return {};
  }

  // Looks at the rows of the chunk that was read last.
  Result<void> look_at_rows(RowFigures& figures) {
    if (row_bytes(model_->context()) > kRowBytesMax) {
      result_.notes.push_back(
          "rows of the cache are not compared: they take more than 1 GiB at "
          "the first depth");
      return {};
    }
    const std::string path = options_.base_directory + "/rows";
    if (options_.kv == "f16") return record_rows(model_->context(), path);
    const Result<RowFigures> found = compare_rows(model_->context(), path);
    if (!found) return std::unexpected(found.error());
    figures = *found;
    return {};
  }

  Result<void> ask_questions(Engine& engine) {
    if (!wants("needles") && !wants("tools")) return {};
    const Result<Asker> asker = Asker::create(engine);
    if (!asker) {
      result_.notes.push_back(
          format_text("needles and tool calls are left out: {}", asker.error().message));
      return {};
    }
    if (wants("needles")) {
      if (const auto asked = ask_needles(*asker); !asked) return asked;
    }
    if (!wants("tools")) return {};
    auto calls = try_tool_calls(*asker, options_.n_tool_calls, stage("tool calls", tool_weight()));
    if (!calls) return std::unexpected(calls.error());
    result_.tool_calls = std::move(*calls);
    auto schemas = try_schemas(*asker, stage("JSON schemas", schema_weight()));
    if (!schemas) return std::unexpected(schemas.error());
    result_.schemas = std::move(*schemas);
    return {};
  }

  Result<void> ask_needles(const Asker& asker) {
    std::vector<int> depths = result_.depths;
    const int depth_min = needle_depth_min(options_.needle_kinds);
    std::erase_if(depths, [&](int depth) { return depth < depth_min; });
    if (depths.size() < result_.depths.size()) {
      result_.notes.push_back(format_text(
          "needles at depths below {} are left out: they have no room for a text", depth_min));
    }
    const std::vector<Needle> needles = make_needles(
        options_.needle_kinds, depths, options_.n_needle_texts, hay_of(*vocabulary_, tokens_));
    const OnProgress progress = stage("needles", needle_weight());
    for (const Needle& needle : needles) {
      const Result<Reply> reply = asker.ask({.text = needle.text});
      if (!reply) return std::unexpected(reply.error());
      result_.needles.push_back({.kind = needle.kind,
                                 .depth = needle.depth,
                                 .position = needle.position,
                                 .name = needle.name,
                                 .answer = reply->answer.content,
                                 .right = answers(reply->answer.content, needle.name),
                                 .n_prompt = reply->usage.n_prompt,
                                 .n_cached = reply->usage.n_cached});
      progress(static_cast<double>(result_.needles.size()) / static_cast<double>(needles.size()));
    }
    return {};
  }

  Result<void> drift(Engine& engine) {
    if (!wants("drift")) return {};
    auto continued =
        continue_text(engine, tokens_,
                      {.n_prompts = options_.n_drift_prompts, .n_tokens = options_.n_drift_tokens},
                      stage("drift", drift_weight()));
    if (!continued) return std::unexpected(continued.error());
    result_.continuations = std::move(*continued);
    return {};
  }

  Result<void> work(Engine& engine) {
    for (const std::string_view kind : kWorkKinds) {
      if (!wants(kind)) continue;
      if (n_trained_ < kWorkTokensMax) {
        result_.notes.push_back(
            format_text("{} is left out: its tasks take up to {} tokens, and the model was trained "
                        "for {}",
                        kind, kWorkTokensMax, n_trained_));
        continue;
      }
      const Result<std::vector<WorkTask>> tasks =
          make_work(kind, options_.n_work_tasks, hay_of(*vocabulary_, tokens_));
      if (!tasks) return std::unexpected(tasks.error());
      auto answers = try_work(engine, kind, *tasks, stage(kind, work_weight()));
      if (!answers) return std::unexpected(answers.error());
      std::ranges::move(*answers, std::back_inserter(result_.work));
    }
    return {};
  }

  const ArmOptions& options_;
  const OnArmProgress& on_progress_;
  Tokens tokens_;
  std::optional<Token> begin_;
  int n_trained_ = 0;
  std::unique_ptr<Model> model_;  // until the engine takes it
  std::unique_ptr<Vocabulary> vocabulary_;
  double done_ = 0;
  ArmResult result_;
};

}  // namespace

Result<ArmResult> run_arm(const ArmOptions& options, const OnArmProgress& on_progress) {
  return Arm(options, on_progress).run();
}

}  // namespace slipstream::quality
