// What users of the engine feel, measured: time between tokens beside a long prompt, time to the
// first token behind a shared prefix, tokens per second of many sequences. Not a test: it judges
// nothing.
//
//   engine_benchmark MODEL KV SCENARIO [--threads N] [--tokens N] [--depth N] [--sequences N]
//
//   aggregate  --sequences generate --tokens each, behind prompts of --depth (all different)
//   stall      4 sequences generate; then a prompt of --depth comes in
//   prefix     a prompt of --depth three times: new, while the first still generates, and later
//   latency    1,000 prompts of --depth, one after the other: the time to the first token of each
//   restart    a prompt of --depth twice, with a restart in between and --disk to keep it
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>

#include "engine/engine.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

struct Options {
  std::string model;
  std::string kv;
  std::string scenario;
  int n_threads = 1;
  int n_tokens = 32;
  int n_depth = 1;
  int n_sequences = 8;
  bool as_server = false;
  double seconds_max = 600;
  std::string disk;
};

// The times at which each token of a request came.
class Timeline {
 public:
  void take(const Event& event) {
    {
      const std::scoped_lock lock(mutex_);
      times_.insert(times_.end(), event.tokens.size(), Clock::now());
      ended_ = ended_ || event.ending.has_value();
      if (event.ending && event.ending->reason == FinishReason::kFailed) {
        std::fprintf(stderr, "failed: %s\n", event.ending->error.c_str());
      }
    }
    news_.notify_all();
  }
  std::vector<Clock::time_point> times() const {
    const std::scoped_lock lock(mutex_);
    return times_;
  }
  bool wait_tokens(std::size_t n, double seconds_max) {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, std::chrono::duration<double>(seconds_max),
                          [&] { return times_.size() >= n || ended_; });
  }
  void wait_end() {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return ended_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Clock::time_point> times_;
  bool ended_ = false;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) { start(); }

  void run() {
    if (options_.scenario == "aggregate") return aggregate();
    if (options_.scenario == "stall") return stall();
    if (options_.scenario == "prefix") return prefix();
    if (options_.scenario == "restart") return restart();
    if (options_.scenario == "latency") return latency();
    throw std::runtime_error("no scenario " + options_.scenario);
  }

 private:
  void start() {
    const Options& options = options_;
    RunnerOptions runner{.n_sequences_max = options.n_sequences + 2, .n_prefixes_max = 16};
    int n_cells = scenario_cells();
    if (options.as_server) {
      runner = {.n_sequences_max = options.n_sequences};
      n_cells = 4096;
    }
    Result<Model> model = Model::load({.path = options.model,
                                       .kv = options.kv,
                                       .plugin = SLIPSTREAM_PLUGIN,
                                       .n_cells = n_cells,
                                       .n_sequences_max = runner.n_sequence_ids(),
                                       .n_step_tokens_max = 512,
                                       .n_outputs_max = 1,
                                       .n_threads = options.n_threads,
                                       .on_progress = {}});
    if (!model) throw std::runtime_error(model.error().message);
    auto engine = Engine::start(std::move(*model), {.runner = runner,
                                                    .n_requests_max = 64,
                                                    .disk_directory = options.disk,
                                                    .disk_bytes_max = std::uint64_t{16} << 30});
    if (!engine) throw std::runtime_error(engine.error().message);
    engine_ = std::move(*engine);
  }

  [[nodiscard]] int scenario_cells() const {
    if (options_.scenario == "aggregate")
      return options_.n_sequences * (options_.n_depth + options_.n_tokens + 16);
    return options_.n_depth + 8192;
  }

  RequestId ask(Timeline& timeline, int n_prompt, int n_tokens, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Token> prompt(static_cast<std::size_t>(n_prompt));
    for (Token& token : prompt) token = static_cast<Token>(100 + random() % 100);
    SamplingParams greedy;
    greedy.temperature = 0;
    if (options_.as_server) greedy.n_top_logprobs = 0;
    const Result<RequestId> id =
        engine_->submit({.prompt = std::move(prompt),
                         .n_tokens_max = n_tokens,
                         .sampling = greedy,
                         .ignores_end = true},
                        [&timeline](const Event& event) { timeline.take(event); });
    if (!id) throw std::runtime_error(id.error().message);
    return *id;
  }

  // From the moment when all generate to the end, as llama-batched-bench counts. Prompts are
  // computed before, one after the other, so that all begin at once.
  void aggregate() {
    for (int i = 0; i < options_.n_sequences; ++i) {
      Timeline prompt;
      (void)ask(prompt, options_.n_depth, 1, static_cast<unsigned>(i));
      prompt.wait_end();
    }
    std::vector<Timeline> timelines(static_cast<std::size_t>(options_.n_sequences));
    for (unsigned i = 0; i < timelines.size(); ++i)
      (void)ask(timelines[i], options_.n_depth, options_.n_tokens, i);
    Clock::time_point started;
    for (Timeline& timeline : timelines) {
      timeline.wait_tokens(1, 1e9);
      started = std::max(started, timeline.times().front());
    }
    std::size_t n_tokens = 0;
    Clock::time_point ended;
    // The window in which every one of them generates.
    Clock::time_point first_end = Clock::time_point::max();
    for (Timeline& timeline : timelines) {
      timeline.wait_end();
      first_end = std::min(first_end, timeline.times().back());
    }
    ended = first_end;
    for (const Timeline& timeline : timelines) {
      n_tokens += static_cast<std::size_t>(std::ranges::count_if(
          timeline.times(),
          [&](Clock::time_point time) { return time > started && time <= ended; }));
    }
    std::printf("aggregate kv=%s sequences=%d depth=%d tokens=%zu seconds=%.2f tokens_per_s=%.2f\n",
                options_.kv.c_str(), options_.n_sequences, options_.n_depth, n_tokens,
                seconds(ended - started), static_cast<double>(n_tokens) / seconds(ended - started));
  }

  static void print_gaps(const char* what, std::vector<double> gaps) {
    if (gaps.empty()) return;
    std::ranges::sort(gaps);
    const auto at = [&](double share) {
      return gaps[static_cast<std::size_t>(share * static_cast<double>(gaps.size() - 1))];
    };
    std::printf("%s gaps=%zu p50=%.0f ms p90=%.0f ms p99=%.0f ms max=%.0f ms\n", what, gaps.size(),
                at(0.5) * 1e3, at(0.9) * 1e3, at(0.99) * 1e3, gaps.back() * 1e3);
  }

  static void add_gaps(const Timeline& timeline, Clock::time_point from, Clock::time_point to,
                       std::vector<double>& gaps) {
    const auto times = timeline.times();
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (times[i] > from && times[i] <= to) gaps.push_back(seconds(times[i] - times[i - 1]));
    }
  }

  void stall() {
    constexpr int kStreams = 4;
    std::vector<Timeline> streams(kStreams);
    for (unsigned i = 0; i < kStreams; ++i) (void)ask(streams[i], 16, 1900, i);
    for (Timeline& stream : streams) stream.wait_tokens(70, options_.seconds_max);
    const Clock::time_point asked = Clock::now();
    std::vector<double> before;
    for (const Timeline& stream : streams) add_gaps(stream, stream.times().at(5), asked, before);
    Timeline prompt;
    (void)ask(prompt, options_.n_depth, 2, 99);
    const bool done = prompt.wait_tokens(1, options_.seconds_max);
    const Clock::time_point ended = Clock::now();
    std::vector<double> beside;
    for (const Timeline& stream : streams) add_gaps(stream, asked, ended, beside);
    const RunnerStats stats = engine_->stats();
    print_gaps("undisturbed:", before);
    print_gaps("beside the prompt:", beside);
    std::printf("prompt of %d: %s after %.1f s; chunk at the end: %d tokens\n", options_.n_depth,
                done ? "first token" : "given up", seconds(ended - asked),
                stats.n_prefill_tokens_max);
    engine_.reset();  // it still tells the timelines
  }

  void prefix() {
    Timeline first;
    const Clock::time_point start = Clock::now();
    const RequestId id = ask(first, options_.n_depth, 2000, 7);
    first.wait_tokens(1, 1e9);
    const double first_s = seconds(first.times().front() - start);
    const auto again = [&](const char* what) {
      Timeline next;
      const Clock::time_point asked = Clock::now();
      (void)ask(next, options_.n_depth, 2, 7);
      next.wait_tokens(1, 1e9);
      const double next_s = seconds(next.times().front() - asked);
      std::printf("prefix of %d, %s: first token after %.3f s, %.2f %% of the first's %.2f s\n",
                  options_.n_depth, what, next_s, next_s / first_s * 100, first_s);
      next.wait_end();
    };
    again("while the first generates");
    engine_->cancel(id);
    first.wait_end();
    again("later");
  }

  void latency() {
    std::vector<double> latencies;
    for (unsigned i = 0; i < 1000; ++i) {
      Timeline timeline;
      const Clock::time_point asked = Clock::now();
      (void)ask(timeline, options_.n_depth, 1, i);
      timeline.wait_end();
      latencies.push_back(seconds(timeline.times().front() - asked));
    }
    std::ranges::sort(latencies);
    std::printf("latency depth=%d p50=%.3f ms p99=%.3f ms\n", options_.n_depth,
                latencies[500] * 1e3, latencies[990] * 1e3);
  }

  void restart() {
    const auto first_token = [this] {
      Timeline timeline;
      const Clock::time_point asked = Clock::now();
      (void)ask(timeline, options_.n_depth, 2, 7);
      timeline.wait_end();
      return seconds(timeline.times().front() - asked);
    };
    const double first_s = first_token();
    const Clock::time_point stopped = Clock::now();
    engine_.reset();
    const double saved_s = seconds(Clock::now() - stopped);
    start();
    const double next_s = first_token();
    std::printf(
        "prefix of %d, after a restart: first token after %.3f s, %.2f %% of the first's %.2f s; "
        "stopping took %.2f s\n",
        options_.n_depth, next_s, next_s / first_s * 100, first_s, saved_s);
  }

  Options options_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  slipstream::Options options;
  CLI::App app("Measures the engine on a model");
  app.add_option("model", options.model)->required();
  app.add_option("kv", options.kv)->required();
  app.add_option("scenario", options.scenario)->required();
  app.add_option("--threads", options.n_threads);
  app.add_option("--tokens", options.n_tokens);
  app.add_option("--depth", options.n_depth);
  app.add_option("--sequences", options.n_sequences);
  app.add_flag(
      "--as-server", options.as_server,
      "With the cells, prefixes and log-probabilities that overhead.py asks the server for");
  app.add_option("--seconds-max", options.seconds_max);
  app.add_option("--disk", options.disk);
  CLI11_PARSE(app, argc, argv);
  try {
    slipstream::Bench(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_benchmark: %s\n", error.what());
    return 1;
  }
}
