#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "engine/model_fingerprint.h"

namespace slipstream {

Result<std::unique_ptr<Engine>> Engine::start(Model model, const EngineOptions& options) {
  Result<Vocabulary> vocabulary = Vocabulary::create(model.model());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  std::unique_ptr<DiskTier> tier;
  if (!options.disk_directory.empty()) {
    const Result<Fingerprint> fingerprint = fingerprint_of(model.path(), model.kv());
    if (!fingerprint) return std::unexpected(fingerprint.error());
    Result<std::unique_ptr<DiskTier>> opened =
        DiskTier::open(options.disk_directory, options.disk_bytes_max, *fingerprint);
    if (!opened) return std::unexpected(opened.error());
    tier = std::move(*opened);
  }
  return std::unique_ptr<Engine>(
      new Engine(std::move(model), std::move(*vocabulary), options, std::move(tier)));
}

Engine::Engine(Model model, Vocabulary vocabulary, const EngineOptions& options,
               std::unique_ptr<DiskTier> tier)
    : options_(options),
      model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      thread_([this, tier = std::move(tier)](const std::stop_token& stop) mutable {
        run(stop, std::move(tier));
      }) {}

Engine::~Engine() {
  thread_.request_stop();
  thread_.join();
}

Result<RequestId> Engine::submit(GenerateRequest request, Listener listener) {
  const int n_vocab = vocabulary_.n_tokens();
  const auto is_token = [n_vocab](Token token) { return token >= 0 && token < n_vocab; };
  if (!std::ranges::all_of(request.prompt, is_token)) {
    return fail(Code::kInvalidArgument, "the prompt has a token that the model does not know");
  }
  if (const auto checked = check(request.sampling, n_vocab); !checked)
    return std::unexpected(checked.error());
  if (const auto fits = check_size(n_context(), request.prompt.size(), request.n_tokens_max);
      !fits) {
    return std::unexpected(fits.error());
  }
  Result<Sampler> sampler = Sampler::create(vocabulary_, request.sampling);
  if (!sampler) return std::unexpected(sampler.error());
  sampler->accept_prompt(request.prompt);
  Result<TextStream> text = TextStream::create(request.stops);
  if (!text) return std::unexpected(text.error());

  // Counted down by the last event, whoever causes it.
  Listener counting = [this, listener = std::move(listener)](const Event& event) {
    if (event.ending) {
      const MutexLock lock(mutex_);
      --n_requests_;
    }
    listener(event);
  };
  RequestId id = 0;
  {
    const MutexLock lock(mutex_);
    if (n_requests_ >= options_.n_requests_max) {
      return fail(Code::kOverloaded,
                  format_text("{} requests are waiting or running", n_requests_));
    }
    ++n_requests_;
    id = ++last_id_;
    inbox_.push_back({.id = id,
                      .request = std::move(request),
                      .sampler = std::move(*sampler),
                      .text = std::move(*text),
                      .listener = std::move(counting)});
  }
  has_mail_.notify_one();
  return id;
}

void Engine::cancel(RequestId id) {
  {
    const MutexLock lock(mutex_);
    cancelled_.push_back(id);
  }
  has_mail_.notify_one();
}

RunnerStats Engine::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

// Waits if the runner has nothing to do. False: it is time to stop.
bool Engine::take_inbox(Runner& runner, const std::stop_token& stop) {
  std::vector<Runner::Job> jobs;
  std::vector<RequestId> cancelled;
  {
    const MutexLock lock(mutex_);
    stats_ = runner.stats();
    const auto has_mail = [this]() SLIP_TSA(no_thread_safety_analysis) {
      return !inbox_.empty() || !cancelled_.empty();
    };
    if (const auto rest = runner.rest(); !rest) {
      has_mail_.wait(mutex_, stop, has_mail);
    } else if (*rest > std::chrono::steady_clock::duration::zero()) {
      has_mail_.wait_for(mutex_, stop, *rest, has_mail);
    }
    jobs.swap(inbox_);
    cancelled.swap(cancelled_);
  }
  for (Runner::Job& job : jobs) {
    const Listener listener = job.listener;
    if (const auto added = runner.add(std::move(job)); !added) {
      listener({.ending = Ending{.reason = FinishReason::kFailed, .error = added.error().message}});
    }
  }
  for (const RequestId id : cancelled) runner.cancel(id);
  return !stop.stop_requested();
}

void Engine::run(const std::stop_token& stop, std::unique_ptr<DiskTier> tier) {
  Runner runner(model_, vocabulary_, options_.runner, std::move(tier));
  while (take_inbox(runner, stop)) runner.step();
}

}  // namespace slipstream
