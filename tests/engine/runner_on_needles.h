// A runner on the needle model, without its thread: every step is the test's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model_fingerprint.h"
#include "engine/runner.h"
#include "engine/speculation/draft_model.h"
#include "engine/speculation/mtp_head.h"
#include "needles.h"

namespace slipstream {

inline ModelOptions options_of(const std::string& path, const std::string& kv, int n_cells,
                               int n_ids) {
  return {.path = path,
          .kv = kv,
          .plugin = SLIPSTREAM_PLUGIN,
          .n_cells = n_cells,
          .n_sequences_max = n_ids,
          .n_step_tokens_max = 256,
          .n_outputs_max = 64,
          .n_threads = 1,
          .on_progress = {}};
}

struct Outcome {
  std::string text;
  std::vector<Token> tokens;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  std::optional<Ending> ending;
};

// A draft model, if it has a path; or the model's own layer for it.
struct DraftOnNeedles {
  std::string path = {};
  std::string kv = "f16";
  int n_cells = 8192;
  bool is_mtp = false;
};

inline ModelOptions with_mtp(ModelOptions options, bool has_mtp) {
  options.has_mtp = has_mtp;
  return options;
}

class RunnerOnNeedles {
 public:
  RunnerOnNeedles(const std::string& kv, int n_cells, const RunnerOptions& options,
                  const std::string& path = SLIPSTREAM_NEEDLE_MODEL,
                  const std::string& disk_directory = {}, const DraftOnNeedles& draft = {})
      : model_(must(Model::load(
            with_mtp(options_of(path, kv, n_cells, options.n_sequence_ids()), draft.is_mtp)))),
        vocabulary_(must(Vocabulary::create(model_.model()))),
        drafter_(load(draft, options.n_sequences_max)),
        runner_(model_, vocabulary_, options, open_tier(disk_directory), drafter_.get()) {}

  RequestId ask(const std::string& prompt, int n_tokens_max, const std::string& client = "") {
    return ask(must(vocabulary_.tokenize(prompt, false, true)), n_tokens_max, client);
  }

  RequestId ask(std::vector<Token> prompt, int n_tokens_max, const std::string& client = "") {
    SamplingParams greedy;
    greedy.temperature = 0;
    return ask({.prompt = std::move(prompt),
                .n_tokens_max = n_tokens_max,
                .sampling = greedy,
                .client = client});
  }

  RequestId ask(const GenerateRequest& request) {
    const RequestId id = ++last_id_;
    const auto added =
        runner_.add({.id = id,
                     .request = request,
                     .sampler = must(Sampler::create(vocabulary_, request.sampling)),
                     .text = must(TextStream::create(request.stops)),
                     .listener = [this, id](const Event& event) { take(id, event); }});
    EXPECT_TRUE(added.has_value());
    return id;
  }

  void run() {
    while (runner_.step() || runner_.stats().n_waiting > 0) {
    }
  }
  std::string answer(const std::string& prompt, int n_tokens_max = 12) {
    const RequestId id = ask(prompt, n_tokens_max);
    run();
    return outcomes[id].text;
  }

  Runner& runner() { return runner_; }
  BatchDrafter& drafter() { return *drafter_; }
  DraftModel& draft_model() { return dynamic_cast<DraftModel&>(*drafter_); }
  MtpHead& mtp_head() { return dynamic_cast<MtpHead&>(*drafter_); }
  Model& model() { return model_; }
  llama_context* context() { return model_.context(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  std::map<RequestId, Outcome> outcomes;

 private:
  template <typename T>
  static T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }

  std::unique_ptr<BatchDrafter> load(const DraftOnNeedles& draft, int n_sequences) {
    if (draft.is_mtp) return must(MtpHead::create(model_, n_sequences));
    if (draft.path.empty()) return nullptr;
    return must(DraftModel::create(
        must(Model::load(options_of(draft.path, draft.kv, draft.n_cells, n_sequences))), model_));
  }

  std::unique_ptr<DiskTier> open_tier(const std::string& directory) {
    if (directory.empty()) return nullptr;
    return must(DiskTier::open(directory, std::uint64_t{1} << 30,
                               must(fingerprint_of(model_.path(), model_.kv()))));
  }

  void take(RequestId id, const Event& event) {
    Outcome& outcome = outcomes[id];
    EXPECT_FALSE(outcome.ending.has_value()) << "an event after the ending";
    outcome.text += event.text;
    for (const Sampled& sampled : event.tokens) {
      outcome.tokens.push_back(sampled.token);
      if (sampled.logprobs) outcome.logprobs.push_back(*sampled.logprobs);
    }
    std::ranges::copy(event.prompt_logprobs, std::back_inserter(outcome.prompt_logprobs));
    outcome.ending = event.ending;
  }

  Model model_;
  Vocabulary vocabulary_;
  std::unique_ptr<BatchDrafter> drafter_;
  Runner runner_;
  RequestId last_id_ = 0;
};

class EngineOnEveryScheme : public testing::TestWithParam<std::string> {};

}  // namespace slipstream
