// Engine: the thread that owns a model, and the door to it for every other thread.
//
// Whoever asks prepares the request on its own thread (checks, grammar), once it has a place among
// the n_requests_max; the engine takes it up before its next step. What is thrown on the engine's
// thread ends requests, never the process: a batch or a sampler that throws, its own; anything
// else, all that are running, and the cache starts empty.
//
//   auto engine = Engine::start(std::move(model), {});
//   (*engine)->submit(request, [](const Event& event) { ... });
//
// Threads: thread-safe. Listeners are called on the engine's thread. Destruction cancels what is
// left. Errors: start(): kUnsupported for a model without a vocabulary; as of
// disk_tier.h. submit(): kInvalidArgument, and kOverloaded when too many wait.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/runner.h"

namespace slipstream {

struct EngineOptions {
  RunnerOptions runner;
  int n_requests_max = 256;  // that wait or run
  // Where idle prefixes are kept (disk_tier.h); empty: nowhere.
  std::string disk_directory = {};
  std::uint64_t disk_bytes_max = 0;
  std::function<void()> on_step = {};  // for tests: before each step; may throw
};

class Engine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Engine>> start(Model model,
                                                             const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether submit() would find a place now: asked before a request is made ready for it.
  [[nodiscard]] Result<void> check_room() const;
  [[nodiscard]] Result<RequestId> submit(GenerateRequest request, Listener listener);
  // The same for one of several requests whose sampling differs in nothing but the seed: the first
  // fills `shared`, and the others copy it.
  [[nodiscard]] Result<RequestId> submit(GenerateRequest request, Listener listener,
                                         std::optional<Sampler>& shared);
  void cancel(RequestId id);  // within one step; nothing if it has ended

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] llama_model* model() const { return model_.model(); }
  [[nodiscard]] int n_context() const { return model_.n_cells(); }
  [[nodiscard]] RunnerStats stats() const;

 private:
  Engine(Model model, Vocabulary vocabulary, const EngineOptions& options,
         std::unique_ptr<DiskTier> tier);
  [[nodiscard]] Result<Runner::Job> prepare(GenerateRequest request,
                                            std::optional<Sampler>& shared) const;
  [[nodiscard]] Result<void> find_place() const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] Result<void> take_place();
  void leave_place();
  [[nodiscard]] RequestId post(Runner::Job job);
  void run(const std::stop_token& stop, std::unique_ptr<DiskTier> tier);
  void run_until_failure(const std::stop_token& stop, std::unique_ptr<DiskTier> tier);
  [[nodiscard]] bool take_inbox(Runner& runner, const std::stop_token& stop);

  EngineOptions options_;
  Model model_;
  Vocabulary vocabulary_;

  mutable Mutex mutex_;
  std::condition_variable_any has_mail_;
  std::vector<Runner::Job> inbox_ SLIP_GUARDED_BY(mutex_);
  std::vector<RequestId> cancelled_ SLIP_GUARDED_BY(mutex_);
  int n_requests_ SLIP_GUARDED_BY(mutex_) = 0;  // waiting, running or in the inbox
  RequestId last_id_ SLIP_GUARDED_BY(mutex_) = 0;
  RunnerStats stats_ SLIP_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses everything above
};

}  // namespace slipstream
