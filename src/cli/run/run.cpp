#include "cli/run/run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "cli/hub/find_model.h"
#include "cli/hub/offer_pull.h"
#include "cli/kv_choice.h"
#include "cli/model_flags.h"
#include "cli/progress.h"
#include "cli/rpc_plan.h"
#include "engine/engine.h"

namespace slipstream::run {
namespace {

using std::chrono::steady_clock;

RunnerOptions runner_options(const Options& options) {
  return {.n_sequences_max = 1,
          .n_prefixes_max = 1,
          .speculation = {.speculates = speculates_of(options.speculate)}};
}

// The pending token's, and those of a draft.
int n_outputs_max(const Options& options) {
  return options.speculate == "off" ? 1 : 1 + SpeculationOptions::kDraftMax;
}

double seconds_between(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Result<std::string> read_prompt(const Options& options) {
  if (options.prompt_file.empty()) return options.prompt;
  if (options.prompt_file == "-") {
    return std::string(std::istreambuf_iterator(std::cin), std::istreambuf_iterator<char>());
  }
  std::ifstream file(options.prompt_file, std::ios::binary);
  if (!file) return fail_errno(errno, format_text("cannot open {}", options.prompt_file));
  return std::string(std::istreambuf_iterator(file), std::istreambuf_iterator<char>());
}

// A token has at least one byte of the text, apart from those that mark its beginning and end.
std::int64_t tokens_at_most(std::string_view text) {
  constexpr std::int64_t kMarks = 8;
  return static_cast<std::int64_t>(text.size()) + kMarks;
}

// Passes the engine's events to the thread that prints them.
class Answer {
 public:
  void take(const Event& event) {
    {
      const std::scoped_lock lock(mutex_);
      text_ += event.text;
      if (!event.tokens.empty() && !first_token_) first_token_ = steady_clock::now();
      ending_ = event.ending;
    }
    news_.notify_one();
  }

  struct News {
    std::string text;
    std::optional<Ending> ending;
    std::optional<steady_clock::time_point> first_token;
  };
  // Waits at most a tenth of a second, so that progress can be drawn.
  News wait() {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::milliseconds(100),
                   [this] { return !text_.empty() || ending_; });
    return {.text = std::exchange(text_, {}), .ending = ending_, .first_token = first_token_};
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::string text_;
  std::optional<Ending> ending_;
  std::optional<steady_clock::time_point> first_token_;
};

// Prints the answer as it arrives. Until then, shows how much of the prompt is done.
Answer::News print(Answer& answer, const Engine& engine, std::size_t n_prompt) {
  std::optional<Progress> progress(std::in_place, "reading the prompt");
  while (true) {
    Answer::News news = answer.wait();
    if (news.first_token || news.ending) progress.reset();
    if (progress) {
      const RunnerStats stats = engine.stats();
      progress->show(static_cast<double>(stats.n_cached_tokens + stats.n_prompt_tokens) /
                     static_cast<double>(n_prompt));
    }
    std::fputs(news.text.c_str(), stdout);
    std::fflush(stdout);
    if (news.ending) return news;
  }
}

void print_timings(const Ending& ending, double load_seconds, double prompt_seconds, double seconds,
                   std::string_view kv) {
  const Usage& usage = ending.usage;
  const auto speed = [](int n, double time) { return time > 0 ? n / time : 0.0; };
  std::fprintf(
      stderr, "%s\n",
      format_text(
          "load {:.1f} s | prompt {} tokens{}, {:.1f} s ({:.1f}/s) | answer {} tokens, {:.1f} s "
          "({:.1f}/s{}) | KV {} | {}",
          load_seconds, usage.n_prompt,
          usage.n_cached > 0 ? format_text(", {} from disk", usage.n_cached) : "", prompt_seconds,
          speed(usage.n_prompt, prompt_seconds), usage.n_generated, seconds,
          speed(usage.n_generated - 1, seconds),
          usage.n_accepted > 0
              ? format_text(", {:.1f} tokens a step",
                            speed(usage.n_generated, usage.n_generated - usage.n_accepted))
              : "",
          kv, name(ending.reason))
          .c_str());
}

// Its context has room for all that this prompt and its answer may have.
Result<std::optional<DraftPlan>> plan_draft_of(const Options& options, std::int64_t n_useful,
                                               std::uint64_t available_bytes) {
  const std::int64_t n_asked = options.n_context > 0 ? options.n_context : n_useful;
  const std::int64_t n_context = std::min(n_useful, n_asked) + SpeculationOptions::kDraftMax;
  return plan_draft(options.draft, static_cast<int>(std::min<std::int64_t>(n_context, 1 << 24)), 1,
                    available_bytes);
}

[[noreturn]] void end_without(const std::string& host) {
  std::fprintf(stderr, "\nslipstream run: %s is gone, and with it a part of the model\n",
               host.c_str());
  std::_Exit(1);
}

Result<Model> load(const Options& options, const std::filesystem::path& path, const KvPlan& kv) {
  const Result<bool> has_mtp =
      plan_mtp(options.draft, options.speculate != "off", path, !options.rpc.empty());
  if (!has_mtp) return std::unexpected(has_mtp.error());
  Spread spread = kv.spread;
  spread.on_lost = end_without;
  Progress progress("reading the model");
  return Model::load({.path = path,
                      .kv = kv.scheme,
                      .plugin = kv.plugin,
                      .experts = kv.experts,
                      .kv_memory = kv.kv_memory,
                      .has_products = kv.has_products,
                      .spread = std::move(spread),
                      .key_profile = kv.key_profile,
                      .rope = options.rope,
                      .n_cells = kv.n_context,
                      .n_sequences_max = runner_options(options).n_sequence_ids(),
                      .n_outputs_max = n_outputs_max(options),
                      .n_threads = options.n_threads,
                      .has_mtp = *has_mtp,
                      .on_progress = [&](float done) {
                        progress.show(static_cast<double>(done));
                        return true;
                      }});
}

Result<int> try_run(const Options& options) {
  const steady_clock::time_point started = steady_clock::now();
  const Result<std::string> prompt = read_prompt(options);
  if (!prompt) return std::unexpected(prompt.error());
  if (const Result<void> installed = install_missing({options.model}, options.is_sure);
      !installed) {
    return std::unexpected(installed.error());
  }
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  const Result<std::filesystem::path> path = find_model(options.model);
  if (!path) return std::unexpected(path.error());
  WeightWish weights = options.weights;
  weights.n_threads = options.n_threads;
  const std::int64_t n_useful = tokens_at_most(*prompt) + options.n_tokens_max;
  const Result<std::optional<DraftPlan>> draft = plan_draft_of(options, n_useful, *available);
  if (!draft) return std::unexpected(draft.error());
  const std::uint64_t left = *available - std::min(*available, bytes_of(*draft));
  const Result<KvPlan> kv =
      plan_over_hosts(options.rpc, *path, options.kv,
                      {.shape = {.n_ctx = options.n_context,
                                 .n_sequences_max = runner_options(options).n_sequence_ids(),
                                 .n_threads = 1,
                                 .n_outputs_max = n_outputs_max(options),
                                 .has_drafts = options.speculate != "off"},
                       .n_useful = n_useful,
                       .rope = options.rope},
                      {.available_bytes = left}, weights);
  if (!kv) return std::unexpected(kv.error());
  warn_if_beyond(path->filename().string(), *kv);
  Result<Model> model = load(options, *path, *kv);
  if (!model) return std::unexpected(model.error());
  Result<std::optional<Model>> draft_model = load_draft(*draft, options.n_threads);
  if (!draft_model) return std::unexpected(draft_model.error());
  const Result<std::unique_ptr<Engine>> started_engine =
      Engine::start(std::move(*model),
                    {.runner = runner_options(options),
                     .disk_directory = options.kv_disk,
                     .disk_bytes_max = options.kv_disk_bytes},
                    std::move(*draft_model));
  if (!started_engine) return std::unexpected(started_engine.error());
  Engine& engine = **started_engine;

  Result<std::vector<Token>> tokens = engine.vocabulary().tokenize(*prompt, true, true);
  if (!tokens) return std::unexpected(tokens.error());
  const std::size_t n_prompt = tokens->size();
  SamplingParams sampling;
  sampling.temperature = options.temperature;
  sampling.seed = options.seed;
  Answer answer;
  const steady_clock::time_point asked = steady_clock::now();
  const Result<RequestId> id = engine.submit(
      {.prompt = std::move(*tokens), .n_tokens_max = options.n_tokens_max, .sampling = sampling},
      [&answer](const Event& event) { answer.take(event); });
  if (!id) return std::unexpected(id.error());

  const Answer::News last = print(answer, engine, n_prompt);
  const Ending ending = last.ending.value_or(Ending{.reason = FinishReason::kFailed});
  const steady_clock::time_point ended = steady_clock::now();
  if (ending.reason == FinishReason::kFailed) return fail(Code::kIo, ending.error);
  std::fputs("\n", stdout);
  const steady_clock::time_point first = last.first_token.value_or(ended);
  print_timings(ending, seconds_between(started, asked), seconds_between(asked, first),
                seconds_between(first, ended), kv->scheme);
  return 0;
}

}  // namespace

int run(const Options& options) {
  log::set_level(log::Level::kWarn);  // a person reads the output
  const Result<int> status = try_run(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream run: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace slipstream::run
