#include "engine/runner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "engine/active_request.h"
#include "engine/model/llama_log.h"
#include "engine/prefixes/cell_memory.h"
#include "engine/prefixes/checkpoint_memory.h"

namespace slipstream {

namespace {

// How soon it is noticed that an image has been read, where nothing else is to do.
constexpr std::chrono::milliseconds kImagePause(2);

// While it lives, attention is not causal, if asked for. What llama_decode() throws must not leave it so.
class CellsSeeEachOther {
 public:
  CellsSeeEachOther(llama_context* context, bool is_asked)
      : context_(is_asked ? context : nullptr) {
    if (context_ != nullptr) llama_set_causal_attn(context_, false);
  }
  ~CellsSeeEachOther() {
    if (context_ != nullptr) llama_set_causal_attn(context_, true);
  }
  CellsSeeEachOther(const CellsSeeEachOther&) = delete;
  CellsSeeEachOther& operator=(const CellsSeeEachOther&) = delete;

 private:
  llama_context* context_;
};

constexpr int kThrown = -100;  // not one of libllama's codes

// How long shutdown may wait for prefixes that are not on disk yet.
constexpr std::chrono::seconds kFinishTimeMax(10);

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void add_to_batch(llama_batch& batch, Token token, int position, SeqId seq, bool wants_logits) {
  const int i = batch.n_tokens++;
  batch.token[i] = token;
  batch.pos[i] = position;
  batch.n_seq_id[i] = 1;
  batch.seq_id[i][0] = seq;
  batch.logits[i] = wants_logits ? 1 : 0;
}

}  // namespace

Runner::Runner(Model& model, const Vocabulary& vocabulary, const RunnerOptions& options,
               std::unique_ptr<DiskTier> tier, BatchDrafter* batch_drafter,
               ImageEncoder* image_encoder)
    : model_(model),
      vocabulary_(vocabulary),
      cells_(model.context()),
      state_({.n_cells = model.n_cells(),
              .n_sequences_max = options.n_sequences_max,
              .n_step_tokens_max = static_cast<int>(llama_n_batch(model.context())),
              .n_outputs_max = model.n_outputs_max()}),
      prefixes_(cells_, {.first_seq = options.n_sequences_max,
                         .n_seqs = options.n_prefixes_max,
                         .n_cells_max = options.n_prefix_cells_max > 0 ? options.n_prefix_cells_max
                                                                       : model.n_cells()}),
      reserve_(model, cells_, options.n_sequence_ids() - 1, options.n_sequence_ids() - 2),
      memory_(make_memory(options)),
      control_(state_.limits.n_step_tokens_max),
      speculation_(model.has_recurrent_state() ? SpeculationOptions{} : options.speculation,
                   batch_drafter),
      image_encoder_(image_encoder),
      batch_(llama_batch_init(state_.limits.n_step_tokens_max, 0, 1)) {
  SLIP_CHECK(options.n_sequence_ids() <= static_cast<int>(llama_n_seq_max(model.context())),
             "the context has too few sequence ids");
  if (tier) disk_ = std::make_unique<DiskPrefixes>(std::move(tier), *memory_, options.disk);
  for (SeqId id = options.n_sequences_max - 1; id >= 0; --id) free_ids_.push_back(id);
}

std::unique_ptr<PrefixStrategy> Runner::make_memory(const RunnerOptions& options) {
  const auto remember = [this](Salt salt, std::span<const Token> tokens, bool begins_others) {
    if (disk_) disk_->remember(salt, tokens, begins_others);
  };
  if (model_.has_recurrent_state()) {
    return std::make_unique<CheckpointMemory>(model_, cells_, options.checkpoint_bytes_max,
                                              remember);
  }
  return std::make_unique<CellMemory>(
      model_, cells_, prefixes_, options.n_sequences_max + options.n_prefixes_max,
      [this] { return supply().n_free_cells - reserve_.n_cells(); }, remember);
}

Runner::~Runner() {
  while (!actives_.empty()) {
    const RequestId id = actives_.begin()->first;
    try {
      cancel(id);
    } catch (const std::exception&) {  // such as bad_alloc while its prefix was kept
      const Listener listener = std::move(actives_.at(id)->job.listener);
      actives_.erase(id);
      listener({.ending = Ending{.reason = FinishReason::kCancelled}});
    }
  }
  // A runner that threw may be inconsistent: it saves nothing.
  if (disk_ && std::uncaught_exceptions() == 0) disk_->finish(kFinishTimeMax);
  llama_batch_free(batch_);
}

Result<void> Runner::add(Job job) {
  const RequestId id = job.id;
  const GenerateRequest& request = job.request;
  if (const auto fits =
          check_size(state_.limits.n_cells, request.prompt.size(), request.n_tokens_max);
      !fits) {
    return fits;
  }
  auto active = std::make_unique<Active>(Active{.job = std::move(job)});
  active->tokens = active->job.request.prompt;
  active->holding.salt = active->job.request.salt;
  active->holding.boundaries = active->job.request.boundaries;
  active->usage.n_prompt = static_cast<int>(active->tokens.size());
  Active& added = *actives_.emplace(id, std::move(active)).first->second;
  try {
    if (disk_ && disk_->has_more(added.job.request.salt, added.tokens)) {
      arriving_.push_back(id);
    } else {
      enqueue(added);
    }
  } catch (...) {  // the caller of add() tells its listener
    actives_.erase(id);
    throw;
  }
  return {};
}

void Runner::enqueue(Active& active) {
  const GenerateRequest& request = active.job.request;
  const int n_prompt = active.usage.n_prompt;
  const auto submitted = submit(state_, active.job.id, request.client, n_prompt,
                                request.n_tokens_max, request.priority);
  SLIP_CHECK(submitted.has_value(), "a request of a size that was checked is refused");
  Sequence& sequence = *state_.find(active.job.id);
  sequence.wants_prompt_logprobs = request.wants_prompt_logprobs;
  for (const ImagePlace& image : request.images) {
    sequence.images.push_back(
        {.first = image.first, .end = image.end(), .is_whole = image.rows->is_whole()});
  }
}

void Runner::cancel(RequestId id) {
  const auto found = actives_.find(id);
  if (found == actives_.end()) return;
  if (found->second->holding.seq >= 0) release(*found->second);
  if (disk_ && id == loading_for_) disk_->give_up_load();
  if (std::erase(arriving_, id) == 0) remove(state_, id);
  end(*found->second, {.reason = FinishReason::kCancelled});
}

std::optional<std::chrono::steady_clock::duration> Runner::rest() const {
  using Duration = std::chrono::steady_clock::duration;
  const bool is_waiting_for_images = !state_.sequences.empty() && !has_work();
  if (has_work()) return Duration::zero();
  if (!arriving_.empty() || (disk_ && disk_->is_loading())) {
    return disk_->is_reading() ? std::chrono::milliseconds(1) : Duration::zero();
  }
  const auto due = disk_ ? disk_->next_save() : std::nullopt;
  std::optional<Duration> rest;
  if (due) rest = std::max(*due - std::chrono::steady_clock::now(), Duration::zero());
  if (is_waiting_for_images) rest = std::min(rest.value_or(kImagePause), Duration(kImagePause));
  return rest;
}

// Whether a sequence runs or could.
bool Runner::has_work() const {
  return std::ranges::any_of(state_.sequences, [](const Sequence& sequence) {
    return sequence.is_running() || sequence.is_ready;
  });
}

bool Runner::step() {
  const bool has_moved = move_prefixes();
  if (image_encoder_ != nullptr) end_unreadable();
  if (state_.sequences.empty()) return has_moved;
  count_holdings();
  if (!has_work()) return has_moved;
  propose_drafts();
  Step step = plan(state_, supply());
  ended_.clear();
  for (const RequestId id : step.preempted) {
    release(active(id));
    ++stats_.n_preempted;
  }
  for (const RequestId id : step.admitted) {
    start(active(id), std::min(state_.find(id)->n_cached, state_.find(id)->n_tokens() - 1));
  }
  std::erase_if(step.work, [this](const Work& item) { return !actives_.contains(item.id); });
  make_drafts(step);
  make_room(step.n_cells_needed);
  reserve_cells(step);

  int n_prompt_tokens = 0;
  int n_generating = 0;
  int n_drafted = 0;
  for (const Work& work : step.work) {
    const bool generates = state_.find(work.id)->is_generating();
    (generates ? n_generating : n_prompt_tokens) += work.n;
    n_drafted += work.n_drafted;
  }
  const std::int64_t n_failed = stats_.n_failed_batches;
  const auto started = std::chrono::steady_clock::now();
  const auto images = std::ranges::stable_partition(step.work, [this](const Work& work) {
    return active(work.id).image_at(work.first) == nullptr;
  });
  compute({step.work.begin(), images.begin()});
  for (Work& image : images) compute({&image, 1});
  const double seconds = seconds_since(started);
  if (n_drafted == 0) control_.observe(n_prompt_tokens, n_generating, seconds);
  const bool is_as_proposed =
      n_prompt_tokens == 0 && step.preempted.empty() && n_failed == stats_.n_failed_batches;
  if (is_as_proposed) speculation_.observe_step(n_drafted, seconds);
  for (const Work& work : step.work) {
    if (!actives_.contains(work.id)) continue;  // it has ended
    if (active(work.id).has_images()) continue;
    speculation_.catch_up(active(work.id).holding.seq, active(work.id).tokens);
  }
  ++stats_.n_steps;
  stats_.n_prompt_tokens += n_prompt_tokens;

  commit(state_, step, ended_);
  return true;
}

// Moves at most one slice in each direction.
bool Runner::move_prefixes() {
  if (!disk_) return false;
  const bool has_loaded = load_prefix();
  // A prefix that is evicted before it is saved is lost.
  if (supply().n_free_cells < state_.limits.n_cells / 8) disk_->hurry();
  const auto due = disk_->next_save();
  if (!due || *due > std::chrono::steady_clock::now()) return has_loaded;
  disk_->save_slice();
  return true;
}

bool Runner::load_prefix() {
  if (disk_->is_reading()) return false;
  if (disk_->is_loading()) {
    disk_->load_slice();
    if (disk_->is_loading()) return true;
  } else if (arriving_.empty()) {
    return false;
  }
  while (!arriving_.empty()) {
    const RequestId id = arriving_.front();
    Active& next = active(id);
    // Try once per request: what could not be loaded is computed.
    if (id != loading_for_ && disk_->has_more(next.job.request.salt, next.tokens)) {
      loading_for_ = id;
      disk_->begin_load(next.job.request.salt, next.tokens);
      return true;
    }
    arriving_.pop_front();
    enqueue(next);
  }
  return true;
}

// Updates what the scheduler needs to know about the cache.
void Runner::count_holdings() {
  for (Sequence& sequence : state_.sequences) {
    const Active& holder = active(sequence.id);
    if (sequence.is_running()) {
      sequence.n_own_cells = holder.holding.n_private() + memory_->n_exclusive(holder.holding);
      continue;
    }
    // A prompt with logprobs requested is computed from the start: every token's output is needed.
    const bool is_computed_whole = sequence.wants_prompt_logprobs && sequence.n_generated == 0;
    Match match = is_computed_whole ? Match{} : memory_->find(holder.holding.salt, holder.tokens);
    if (holder.has_images()) {
      match = cut_at_images(holder, match);
      sequence.is_ready = are_images_read(holder, match.n_tokens);
    }
    sequence.n_cached = match.n_tokens;
    sequence.n_cached_evictable = match.n_evictable;
    sequence.n_own_cells = 0;
    sequence.stops_at = memory_->next_share(holder.holding, sequence.n_cached, sequence.n_prompt);
  }
}

// An image is taken over whole or not at all: what its first cells have in common with another's proves
// nothing. The last token is always computed.
Match Runner::cut_at_images(const Active& holder, const Match& match) const {
  const int n_tokens = static_cast<int>(holder.tokens.size());
  const ImagePlace* image = holder.image_at(std::min(match.n_tokens, n_tokens - 1));
  const bool is_cut = image != nullptr && image->first < match.n_tokens;
  if (!is_cut) return match;
  const auto before = static_cast<std::size_t>(image->first);
  if (before == 0) return {};
  return memory_->find(holder.holding.salt, std::span(holder.tokens).first(before));
}

bool Runner::are_images_read(const Active& holder, int n_cached) {
  bool are_read = true;
  for (const ImagePlace& image : holder.job.request.images) {
    if (image.first < n_cached || image.rows->state() == ImageRows::State::kRows) continue;
    image_encoder_->ask(image.rows);
    are_read = false;
  }
  return are_read;
}

void Runner::end_unreadable() {
  std::vector<std::pair<RequestId, std::string>> failed;
  for (const Sequence& sequence : state_.sequences) {
    for (const ImagePlace& image : active(sequence.id).job.request.images) {
      if (image.rows->state() != ImageRows::State::kFailed) continue;
      failed.emplace_back(sequence.id, image.rows->why_failed());
      break;
    }
  }
  for (const auto& [id, why] : failed) {
    if (active(id).holding.seq >= 0) release(active(id));
    remove(state_, id);
    end(active(id), {.reason = FinishReason::kFailed, .error = why});
  }
}

void Runner::propose_drafts() {
  std::vector<Sequence*> generating;
  std::vector<Speculation::Generating> drafting;
  for (Sequence& sequence : state_.sequences) {
    sequence.n_draft = 0;
    if (!sequence.is_running() || !sequence.is_generating()) continue;
    Active& holder = active(sequence.id);
    if (holder.has_images()) continue;  // drafters know words only
    generating.push_back(&sequence);
    drafting.push_back({.drafting = &holder.drafting,
                        .seq = holder.holding.seq,
                        .tokens = holder.tokens,
                        .n_left = sequence.n_tokens_max - sequence.n_generated - 1});
  }
  const std::vector<int> lengths = speculation_.propose(drafting);
  for (std::size_t i = 0; i < lengths.size(); ++i) generating[i]->n_draft = lengths[i];
}

// Not beside prompts, nor when a sequence has given way: there is no room for drafts then.
void Runner::make_drafts(Step& step) {
  std::vector<Speculation::Planned> planned;
  std::vector<Work*> works;
  for (Work& work : step.work) {
    if (!state_.find(work.id)->is_generating()) return;
    Active& worker = active(work.id);
    if (worker.has_images()) continue;
    works.push_back(&work);
    planned.push_back({.drafting = &worker.drafting,
                       .seq = worker.holding.seq,
                       .tokens = worker.tokens,
                       .n_drafted = work.n_drafted});
  }
  speculation_.draft(planned);
  for (std::size_t i = 0; i < planned.size(); ++i) works[i]->n_drafted = planned[i].n_drafted;
}

Supply Runner::supply() const {
  int n_used = prefixes_.n_cells();
  for (const auto& [id, holder] : actives_) n_used += holder->holding.n_private();
  return {.n_free_cells = state_.limits.n_cells - n_used,
          .n_evictable_cells = prefixes_.n_evictable(),
          .n_prefill_tokens_max = control_.n_tokens_max()};
}

void Runner::release(Active& active) {
  speculation_.release(active.holding.seq);
  seen_.remember(active.holding.salt, active.computed());
  memory_->release(active.holding, active.computed());
  active.holding.n_computed = 0;
  free_ids_.push_back(std::exchange(active.holding.seq, -1));
}

// Starts running a sequence; it takes over the cached part of its tokens.
void Runner::start(Active& active, int n_cached) {
  if (active.usage.n_generated == 0) active.started = std::chrono::steady_clock::now();
  SLIP_CHECK(!free_ids_.empty(), "more sequences run than there are ids");
  active.holding.seq = free_ids_.back();
  free_ids_.pop_back();
  if (!memory_->take_over(active.holding, active.tokens, n_cached)) {
    ended_.push_back(active.job.id);
    release(active);
    return end(active,
               {.reason = FinishReason::kFailed, .error = "its saved state could not be restored"});
  }
  active.usage.n_cached =
      std::max(active.usage.n_cached, std::min(n_cached, active.usage.n_prompt));
  stats_.n_cached_tokens += n_cached;
  if (!std::exchange(active.has_started, true)) count_recomputed(active, n_cached);
}

// Only when it starts for the first time: what it had computed itself before it gave way to others
// is no other request's. The last token is always computed, for its output.
void Runner::count_recomputed(Active& active, int n_cached) {
  const int n_seen = seen_.find(active.holding.salt, active.tokens);
  const int n_recomputed = std::min(n_seen, active.usage.n_prompt - 1) - n_cached;
  active.usage.n_recomputed = std::max(n_recomputed, 0);
  stats_.n_recomputed_tokens += active.usage.n_recomputed;
}

// Reserved cells count as free, so the reserve is dropped when they are needed.
void Runner::make_room(int n_cells) {
  const int n_free = supply().n_free_cells;
  if (n_cells > n_free - reserve_.n_cells()) reserve_.drop();
  if (n_cells > n_free) prefixes_.evict(n_cells - n_free);
}

// Keeps the cells of answers apart from those of a prompt, if sequences share cells.
void Runner::reserve_cells(const Step& step) {
  if (!memory_->is_divisible()) return;
  std::vector<CellReserve::Need> generating;
  for (const Work& item : step.work) {
    if (!actives_.contains(item.id) || !state_.find(item.id)->is_generating()) continue;
    generating.push_back({.seq = active(item.id).holding.seq, .n_cells = item.n + item.n_drafted});
  }
  const bool has_prompts = generating.size() < step.work.size();
  SeqId donor = -1;
  for (const Sequence& sequence : state_.sequences) {
    const Holding& holding = active(sequence.id).holding;
    if (holding.seq >= 0 && holding.n_computed >= CellReserve::kCells) donor = holding.seq;
  }
  if (donor < 0 || (generating.size() < 2 && !has_prompts)) return reserve_.drop();
  reserve_.make_way(generating, supply().n_free_cells - step.n_cells_needed, donor);
}

void Runner::compute(std::span<Work> work) {
  if (work.empty()) return;
  if (const int failure = decode(work); failure != 0) return give_up_some(work, failure);
  int batch_idx = 0;
  for (Work& item : work) {
    if (const Active& worker = active(item.id); !worker.has_images()) {
      speculation_.observe_batch(worker.holding.seq, item.first, item.n + item.n_drafted,
                                 batch_idx);
    }
    read_outputs(item, batch_idx);
    batch_idx += item.n + item.n_drafted;
  }
}

// A batch has failed: ends what cannot be computed alone, and computes the rest again.
void Runner::give_up_some(std::span<Work> work, int failure) {
  ++stats_.n_failed_batches;
  const std::string complaint = take_llama_complaint();
  // Part of the batch may have been computed. No other sequence shares these cells yet.
  std::size_t n_left = 0;
  for (Work& item : work) {
    const bool had_drafts = std::exchange(item.n_drafted, 0) > 0;
    const bool is_as_before =
        cells_.remove(active(item.id).holding.seq, item.first, kEndOfSequence);
    if (is_as_before && (work.size() > 1 || had_drafts)) {
      std::swap(work[n_left++], item);
      continue;
    }
    log::error("engine.decode", {{"code", failure}, {"n_tokens", item.n}, {"said", complaint}});
    if (!is_as_before) active(item.id).holding.n_computed = 0;  // its state is not worth keeping
    stop(item.id, {.reason = FinishReason::kFailed,
                   .error = format_text("the engine could not compute it (code {}{}{})", failure,
                                        complaint.empty() ? "" : ": ", complaint)});
  }
  compute(work.first(n_left / 2));
  compute(work.subspan(n_left / 2, n_left - n_left / 2));
}

// Either words, of any sequences, or cells of one image.
int Runner::decode(std::span<const Work> work) {
  const ImagePlace* image = active(work.front().id).image_at(work.front().first);
  fill_batch(work);
  try {
    if (fault_) {
      if (const int failure = fault_(batch_); failure != 0) return failure;
    }
    return image == nullptr ? llama_decode(model_.context(), batch_)
                            : decode_image(work.front(), *image);
  } catch (const std::exception& error) {  // such as bad_alloc
    log::error("engine.decode", {{"thrown", error.what()}});
    return kThrown;
  }
}

// The same batch with rows instead of tokens.
int Runner::decode_image(const Work& work, const ImagePlace& image) {
  const std::span<const float> rows = image.rows->rows();
  const std::size_t n_row = rows.size() / image.rows->cells().size();
  const auto skipped = static_cast<std::size_t>(work.first - image.first) * n_row;
  llama_batch batch = batch_;
  batch.token = nullptr;
  batch.embd = const_cast<float*>(rows.data() + skipped);  // libllama only reads it
  const CellsSeeEachOther seeing(model_.context(), image.rows->is_whole());
  return llama_decode(model_.context(), batch);
}

void Runner::fill_batch(std::span<const Work> work) {
  batch_.n_tokens = 0;
  for (const Work& item : work) {
    const Active& worker = active(item.id);
    for (int i = item.first; i < item.first + item.n; ++i) {
      const bool is_last = i + 1 == item.first + item.n;
      add_to_batch(batch_, worker.tokens[static_cast<std::size_t>(i)], i, worker.holding.seq,
                   (item.samples && is_last) || worker.judges(i));
    }
    for (int i = 0; i < item.n_drafted; ++i) {
      add_to_batch(batch_, worker.drafting.draft()[static_cast<std::size_t>(i)],
                   item.first + item.n + i, worker.holding.seq, true);
    }
  }
}

// Lets others share the computed part of a prompt before the rest is computed.
void Runner::share(Active& donor) {
  const int n_prompt = donor.usage.n_prompt;
  if (donor.holding.n_computed > n_prompt) return;
  if (donor.holding.n_computed == n_prompt) seen_.remember(donor.holding.salt, donor.computed());
  memory_->share(donor.holding, donor.computed(), n_prompt);
  state_.find(donor.job.id)->stops_at =
      memory_->next_share(donor.holding, donor.holding.n_computed, n_prompt);
}

RunnerStats Runner::stats() const {
  RunnerStats stats = stats_;
  for (const Sequence& sequence : state_.sequences) {
    if (!sequence.is_running()) continue;
    stats.running.push_back({.id = sequence.id,
                             .n_prompt = sequence.n_prompt,
                             .n_cached = actives_.at(sequence.id)->usage.n_cached,
                             .n_prompt_computed = std::min(sequence.n_computed, sequence.n_prompt),
                             .n_generated = sequence.n_generated,
                             .n_drafted = actives_.at(sequence.id)->usage.n_drafted,
                             .n_tokens_max = sequence.n_tokens_max});
  }
  stats.n_running = static_cast<int>(stats.running.size());
  stats.n_waiting = static_cast<int>(actives_.size()) - stats.n_running;
  stats.speculation = speculation_.stats();
  for (const auto& [id, holder] : actives_) {
    if (holder->drafting.drafter) stats.n_draft_bytes += holder->drafting.drafter->n_bytes();
  }
  if (disk_) stats.disk = disk_->stats();
  stats.n_cells = state_.limits.n_cells;
  const Supply now = supply();
  stats.n_cells_used = stats.n_cells - now.n_free_cells;
  stats.n_cells_evictable = now.n_evictable_cells;
  stats.n_prefill_tokens_max = now.n_prefill_tokens_max;
  return stats;
}

}  // namespace slipstream
