#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "engine/model/model_fingerprint.h"
#include "engine/speculation/draft_model.h"
#include "engine/speculation/mtp_head.h"
#include "engine/vision/image_key.h"

namespace slipstream {

namespace {

Result<std::unique_ptr<DiskTier>> open_tier_of(const Model& model, const EngineOptions& options) {
  if (options.disk_directory.empty()) return nullptr;
  const Result<Fingerprint> fingerprint =
      fingerprint_of(model.path(), model.kv(), model.key_profile(),
                     {.rope = model.rope(), .n_ctx = model.n_cells()});
  if (!fingerprint) return std::unexpected(fingerprint.error());
  return DiskTier::open(options.disk_directory, options.disk_bytes_max, *fingerprint);
}

struct NamedDrafter {
  std::unique_ptr<BatchDrafter> drafter = {};  // null where it would not be asked
  std::string_view name = "-";
};

Result<NamedDrafter> batch_drafter_of(const Model& model, const EngineOptions& options,
                                      std::optional<Model> draft) {
  const int n_sequences = options.runner.n_sequences_max;
  const bool speculates = options.runner.speculation.speculates != Speculates::kNever;
  if (!speculates || model.has_recurrent_state()) return NamedDrafter{};
  if (draft) {
    SLIP_CHECK(draft->n_outputs_max() >= n_sequences,
               "the draft model's context has too few sequences");
    Result<std::unique_ptr<DraftModel>> made = DraftModel::create(std::move(*draft), model);
    if (!made) return std::unexpected(made.error());
    return NamedDrafter{.drafter = std::move(*made), .name = "draft model"};
  }
  if (!model.has_mtp()) return NamedDrafter{};
  Result<std::unique_ptr<MtpHead>> head = MtpHead::create(model, n_sequences);
  if (!head) return std::unexpected(head.error());
  return NamedDrafter{.drafter = std::move(*head), .name = "MTP"};
}

std::unexpected<Error> refuse_token() {
  return fail(Code::kInvalidArgument, "the prompt has a token that the model does not know");
}

std::vector<Token> words_of(std::span<const Token> prompt) {
  std::vector<Token> words(prompt.begin(), prompt.end());
  std::erase_if(words, is_image_cell);
  return words;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(Model model, const EngineOptions& options,
                                              std::optional<Model> draft_model) {
  Result<Vocabulary> vocabulary = Vocabulary::create(model.model());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  Result<std::unique_ptr<DiskTier>> tier = open_tier_of(model, options);
  if (!tier) return std::unexpected(tier.error());
  if (options.runner.speculation.speculates != Speculates::kNever && model.has_recurrent_state()) {
    log::info("engine.speculation", {{"speculates", "off"},
                                     {"why", "a recurrent state cannot take drafted tokens back"}});
  }
  Result<NamedDrafter> drafter = batch_drafter_of(model, options, std::move(draft_model));
  if (!drafter) return std::unexpected(drafter.error());
  std::unique_ptr<Vision> vision;
  if (!options.projector.empty()) {
    Result<std::unique_ptr<Vision>> loaded =
        Vision::load(options.projector, model, options.n_threads);
    if (!loaded) return std::unexpected(loaded.error());
    vision = std::move(*loaded);
  }
  return std::unique_ptr<Engine>(new Engine(std::move(model), std::move(*vocabulary), options,
                                            std::move(*tier), std::move(drafter->drafter),
                                            drafter->name, std::move(vision)));
}

Engine::Engine(Model model, Vocabulary vocabulary, const EngineOptions& options,
               std::unique_ptr<DiskTier> tier, std::unique_ptr<BatchDrafter> batch_drafter,
               std::string_view batch_drafter_name, std::unique_ptr<Vision> vision)
    : options_(options),
      model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      batch_drafter_(std::move(batch_drafter)),
      batch_drafter_name_(batch_drafter_name),
      vision_(std::move(vision)),
      image_encoder_(vision_ ? std::make_unique<ImageEncoder>(*vision_) : nullptr),
      thread_([this, tier = std::move(tier)](const std::stop_token& stop) mutable {
        run(stop, std::move(tier));
      }) {}

Engine::~Engine() {
  thread_.request_stop();
  thread_.join();
}

Result<void> Engine::find_place() const {
  if (n_requests_ < options_.n_requests_max) return {};
  return fail(Code::kOverloaded, format_text("{} requests are waiting or running", n_requests_));
}

Result<void> Engine::check_room() const {
  const MutexLock lock(mutex_);
  return find_place();
}

Result<void> Engine::take_place() {
  const MutexLock lock(mutex_);
  const Result<void> place = find_place();
  if (place) ++n_requests_;
  return place;
}

void Engine::leave_place() {
  const MutexLock lock(mutex_);
  --n_requests_;
}

// Every token is one of the model's, or a cell of an image.
Result<void> Engine::check_tokens(const GenerateRequest& request) const {
  if (!request.images.empty() && request.wants_prompt_logprobs) {
    return fail(Code::kInvalidArgument, "a prompt with images has no log-probabilities");
  }
  const std::span<const Token> prompt = request.prompt;
  std::size_t at = 0;
  const auto are_words = [&](std::size_t end) {
    const auto words = prompt.subspan(at, end - at);
    return std::ranges::all_of(words, [this](Token token) { return vocabulary_.contains(token); });
  };
  for (const ImagePlace& image : request.images) {
    const auto first = static_cast<std::size_t>(image.first);
    const std::span<const Token> cells = image.rows->cells();
    SLIP_CHECK(image.first >= 0 && first >= at && first + cells.size() <= prompt.size() &&
                   std::ranges::equal(prompt.subspan(first, cells.size()), cells),
               "an image that is not where its request says");
    if (!are_words(first)) return refuse_token();
    at = first + cells.size();
  }
  return are_words(prompt.size()) ? Result<void>() : refuse_token();
}

Result<Runner::Job> Engine::prepare(GenerateRequest request, std::optional<Sampler>& shared) const {
  if (const auto known = check_tokens(request); !known) return std::unexpected(known.error());
  if (const auto fits = check_size(n_context(), request.prompt.size(), request.n_tokens_max);
      !fits) {
    return std::unexpected(fits.error());
  }
  Result<TextStream> text = TextStream::create(request.stops);
  if (!text) return std::unexpected(text.error());
  if (!shared) {
    Result<Sampler> made = Sampler::create(vocabulary_, request.sampling);
    if (!made) return std::unexpected(made.error());
    shared = std::move(*made);
  }
  Sampler sampler = shared->clone(request.sampling);
  if (request.images.empty()) {
    sampler.accept_prompt(request.prompt);
  } else {
    sampler.accept_prompt(words_of(request.prompt));
  }
  return Runner::Job{.id = 0,
                     .request = std::move(request),
                     .sampler = std::move(sampler),
                     .text = std::move(*text),
                     .listener = {}};
}

Result<RequestId> Engine::submit(GenerateRequest request, Listener listener) {
  std::optional<Sampler> alone;
  return submit(std::move(request), std::move(listener), alone);
}

Result<RequestId> Engine::submit(GenerateRequest request, Listener listener,
                                 std::optional<Sampler>& shared) {
  // Take a place before building samplers and grammars, so that a refused request costs little.
  if (const Result<void> place = take_place(); !place) return std::unexpected(place.error());
  try {
    Result<Runner::Job> job = prepare(std::move(request), shared);
    if (!job) {
      leave_place();
      return std::unexpected(job.error());
    }
    // The last event gives the place back, whatever ends the request.
    job->listener = [this, listener = std::move(listener)](const Event& event) {
      if (event.ending) leave_place();
      try {
        listener(event);
      } catch (const std::exception& error) {
        log::error("engine.listener", {{"error", error.what()}});
      }
    };
    const RequestId id = post(std::move(*job));
    has_mail_.notify_one();
    return id;
  } catch (...) {
    leave_place();
    throw;
  }
}

RequestId Engine::post(Runner::Job job) {
  const MutexLock lock(mutex_);
  job.id = ++last_id_;
  inbox_.push_back(std::move(job));
  return last_id_;
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

// Waits if the runner has nothing to do. Returns false when it is time to stop.
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
    Result<void> added;
    try {
      added = runner.add(std::move(job));
    } catch (const std::exception& error) {
      added = fail(Code::kOutOfMemory, error.what());
    }
    if (!added) {
      listener({.ending = Ending{.reason = FinishReason::kFailed, .error = added.error().message}});
    }
  }
  for (const RequestId id : cancelled) runner.cancel(id);
  return !stop.stop_requested();
}

void Engine::run_until_failure(const std::stop_token& stop, std::unique_ptr<DiskTier> tier) {
  Runner runner(model_, vocabulary_, options_.runner, std::move(tier), batch_drafter_.get(),
                image_encoder_.get());
  while (take_inbox(runner, stop)) {
    if (options_.on_step) options_.on_step();
    runner.step();
  }
}

// A runner that threw may be inconsistent: its requests end, and a new runner starts empty.
void Engine::run(const std::stop_token& stop, std::unique_ptr<DiskTier> tier) {
  constexpr std::chrono::milliseconds kPause(100);  // for memory that others free
  for (bool has_failed = false; !stop.stop_requested(); has_failed = true) {
    try {
      if (has_failed) {
        Result<std::unique_ptr<DiskTier>> opened = open_tier_of(model_, options_);
        if (!opened) log::warn("engine.disk_prefix", {{"error", opened.error().message}});
        tier = std::move(opened).value_or(nullptr);
      }
      run_until_failure(stop, std::exchange(tier, nullptr));
    } catch (const std::exception& error) {
      log::error("engine.failure", {{"error", error.what()}});
      llama_memory_clear(llama_get_memory(model_.context()), true);
      if (batch_drafter_) batch_drafter_->clear();
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace slipstream
