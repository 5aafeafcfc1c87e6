// Engine: the thread that owns a model, and the interface to it for all other threads.
//
// The caller's thread prepares a request (checks, grammar) once it has one of the n_requests_max
// places; the engine picks it up before its next step. Exceptions on the engine's thread end
// requests, never the process: one from a batch or a sampler ends the requests concerned, any other
// ends all that are running, and the cache starts empty.
//
//   auto engine = Engine::start(std::move(model), {});  (*engine)->submit(request, listener);
//
// Threads: thread-safe. Listeners run on the engine's thread. The destructor cancels what is left.
// Errors:  start(): kUnsupported for a model without a vocabulary; others as in disk_tier.h and, with
//          a draft model, in draft_model.h; with MTP, in mtp_head.h; with images, in vision.h.
//          submit(): kInvalidArgument; kOverloaded when too many requests wait or run.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/runner.h"
#include "engine/speculation/batch_drafter.h"
#include "engine/vision/image_encoder.h"
#include "engine/vision/vision.h"

namespace slipstream {

struct EngineOptions {
  RunnerOptions runner;
  int n_requests_max = 256;  // waiting and running
  // Directory for idle prefixes (disk_tier.h). If empty, nothing is kept on disk.
  std::string disk_directory = {};
  std::uint64_t disk_bytes_max = 0;
  // The projector with which images are read (vision.h). If empty, there are no images.
  std::filesystem::path projector = {};
  int n_threads = 0;                   // as of the model; images take half of them
  std::function<void()> on_step = {};  // for tests: called before each step; may throw
};

class Engine {
 public:
  // draft_model: guesses what the model will say, if that speculates; it has an id and an output for
  // each sequence that runs. Without one, the model's own layer for MTP does, if it was loaded.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> start(
      Model model, const EngineOptions& options, std::optional<Model> draft_model = std::nullopt);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether submit() would find a place now. Callers ask before they prepare a request.
  [[nodiscard]] Result<void> check_room() const;
  [[nodiscard]] Result<RequestId> submit(GenerateRequest request, Listener listener);
  // Like submit() above, for several requests whose sampling differs only in the seed: the first
  // call fills `shared`, later calls copy it.
  [[nodiscard]] Result<RequestId> submit(GenerateRequest request, Listener listener,
                                         std::optional<Sampler>& shared);
  void cancel(RequestId id);  // within one step; no effect if the request has ended

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] llama_model* model() const { return model_.model(); }
  [[nodiscard]] int n_context() const { return model_.n_cells(); }
  // Whether GenerateRequest::boundaries are of use.
  [[nodiscard]] bool saves_at_boundaries() const { return model_.has_recurrent_state(); }
  // Whether drafts are made. Not with models whose state does not go back.
  [[nodiscard]] bool speculates() const {
    return options_.runner.speculation.speculates != Speculates::kNever &&
           !model_.has_recurrent_state();
  }
  // Who makes some of them: "draft model", "MTP" or "-".
  [[nodiscard]] std::string_view batch_drafter() const { return batch_drafter_name_; }
  // Null: the model has no images.
  [[nodiscard]] Vision* vision() const { return vision_.get(); }
  // How many requests run at a time.
  [[nodiscard]] int n_parallel() const { return options_.runner.n_sequences_max; }
  [[nodiscard]] RunnerStats stats() const;

 private:
  Engine(Model model, Vocabulary vocabulary, const EngineOptions& options,
         std::unique_ptr<DiskTier> tier, std::unique_ptr<BatchDrafter> batch_drafter,
         std::string_view batch_drafter_name, std::unique_ptr<Vision> vision);
  [[nodiscard]] Result<void> check_tokens(const GenerateRequest& request) const;
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
  const std::unique_ptr<BatchDrafter> batch_drafter_;  // null: there is none
  const std::string_view batch_drafter_name_;
  const std::unique_ptr<Vision> vision_;               // null: there are no images
  const std::unique_ptr<ImageEncoder> image_encoder_;  // null as well

  mutable Mutex mutex_;
  std::condition_variable_any has_mail_;
  std::vector<Runner::Job> inbox_ SLIP_GUARDED_BY(mutex_);
  std::vector<RequestId> cancelled_ SLIP_GUARDED_BY(mutex_);
  int n_requests_ SLIP_GUARDED_BY(mutex_) = 0;  // in the inbox, waiting or running
  RequestId last_id_ SLIP_GUARDED_BY(mutex_) = 0;
  RunnerStats stats_ SLIP_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses all members above
};

}  // namespace slipstream
