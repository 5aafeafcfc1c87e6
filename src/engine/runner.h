// Runner: executes plans on a model. One step: plan (scheduler.h), release and take over cells
// (prefix_strategy.h), compute one batch, sample, call the listeners, commit.
//
// A batch that fails in libllama is computed again in halves and without drafts, so that only the
// sequences that cannot be computed fail. Others can share the computed part of a prompt at once.
//
// Threads: owned by the engine's thread.
// Errors:  add() refuses requests that could never run; every later error is the request's ending.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/generation.h"
#include "engine/model/model.h"
#include "engine/prefixes/cell_memory.h"
#include "engine/prefixes/cell_reserve.h"
#include "engine/prefixes/disk_prefixes.h"
#include "engine/prefixes/llama_cells.h"
#include "engine/prefixes/prefix_cache.h"
#include "engine/prefixes/prefix_strategy.h"
#include "engine/prefixes/seen_prefixes.h"
#include "engine/scheduling/prefill_control.h"
#include "engine/scheduling/scheduler.h"
#include "engine/speculation/speculation.h"
#include "engine/text/text_stream.h"
#include "engine/text/vocabulary.h"
#include "engine/vision/image_encoder.h"

namespace slipstream {

struct RunnerOptions {
  int n_sequences_max = 8;     // running at a time
  int n_prefixes_max = 128;    // sequence ids for cached prefixes
  int n_prefix_cells_max = 0;  // 0: no limit
  // For models with recurrent state: memory for saved states, which replace cached prefixes.
  std::size_t checkpoint_bytes_max = std::size_t{1} << 30;
  DiskPrefixes::Options disk = {};
  // Models with recurrent state do not speculate: such a state does not go back.
  SpeculationOptions speculation = {};

  // How many sequence ids the context must have.
  [[nodiscard]] int n_sequence_ids() const {
    return n_sequences_max + n_prefixes_max + CellMemory::kSeqs + 1;
  }
};

// How far one has come.
struct RunningRequest {
  RequestId id = 0;
  int n_prompt = 0;
  int n_cached = 0;           // of the prompt
  int n_prompt_computed = 0;  // likewise, with the cached ones
  int n_generated = 0;
  int n_drafted = 0;
  int n_tokens_max = 0;  // to generate
};

struct RunnerStats {
  int n_running = 0;
  int n_waiting = 0;
  int n_cells = 0;
  int n_cells_used = 0;  // by running sequences or as cached prefixes
  int n_cells_evictable = 0;
  int n_prefill_tokens_max = 0;              // prompt tokens per step while others generate
  std::vector<RunningRequest> running = {};  // in the order of arrival
  std::int64_t n_steps = 0;
  std::int64_t n_prompt_tokens = 0;      // computed
  std::int64_t n_cached_tokens = 0;      // taken over from the cache
  std::int64_t n_recomputed_tokens = 0;  // Usage::n_recomputed
  std::int64_t n_generated_tokens = 0;
  std::int64_t n_preempted = 0;
  std::int64_t n_failed_batches = 0;
  SpeculationStats speculation = {};
  std::size_t n_draft_bytes = 0;  // in which drafts are found, of all running requests
  DiskTierStats disk = {};
};

class Runner {
 public:
  // Without a tier, nothing is kept on disk. The drafter knows nothing yet; null: there is none.
  // image_encoder: null if no request has images.
  Runner(Model& model, const Vocabulary& vocabulary, const RunnerOptions& options,
         std::unique_ptr<DiskTier> tier = nullptr, BatchDrafter* batch_drafter = nullptr,
         ImageEncoder* image_encoder = nullptr);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // A request that its caller's thread has prepared.
  struct Job {
    RequestId id;
    GenerateRequest request;
    Sampler sampler;
    TextStream text;
    Listener listener;
  };
  [[nodiscard]] Result<void> add(Job job);
  void cancel(RequestId id);  // sends only the ending; no effect if the request has ended

  // Runs one step. Returns false if there was nothing to do.
  bool step();
  // How long there is nothing to do unless something is added; nullopt: until something is added.
  [[nodiscard]] std::optional<std::chrono::steady_clock::duration> rest() const;

  [[nodiscard]] RunnerStats stats() const;
  // For tests: forgets every prefix that is not in use.
  void clear_prefixes() { prefixes_.clear(); }
  // For tests: called before libllama computes a batch; a non-zero result counts as its failure.
  void set_fault(std::function<int(const llama_batch&)> fault) { fault_ = std::move(fault); }
  // For tests: what guesses for the requests that are added from now on.
  void set_drafters(Speculation::MakeDrafter make) { speculation_.set_drafters(std::move(make)); }

 private:
  struct Active;

  [[nodiscard]] Active& active(RequestId id) { return *actives_.at(id); }
  [[nodiscard]] std::unique_ptr<PrefixStrategy> make_memory(const RunnerOptions& options);
  void enqueue(Active& active);
  [[nodiscard]] bool move_prefixes();
  [[nodiscard]] bool load_prefix();
  [[nodiscard]] bool has_work() const;
  void count_holdings();
  [[nodiscard]] Match cut_at_images(const Active& holder, const Match& match) const;
  [[nodiscard]] bool are_images_read(const Active& holder, int n_cached);
  void end_unreadable();
  void propose_drafts();
  void make_drafts(Step& step);
  [[nodiscard]] Supply supply() const;
  void release(Active& active);
  void start(Active& active, int n_cached);
  void count_recomputed(Active& active, int n_cached);
  void make_room(int n_cells);
  void reserve_cells(const Step& step);
  void compute(std::span<Work> work);
  void read_outputs(Work& work, int first_batch_idx);
  void give_up_some(std::span<Work> work, int failure);
  [[nodiscard]] int decode(std::span<const Work> work);
  void fill_batch(std::span<const Work> work);
  [[nodiscard]] int decode_image(const Work& work, const ImagePlace& image);
  [[nodiscard]] std::span<const float> logits(int batch_idx) const;
  static void tell_progress(const Active& active);
  void stop(RequestId id, Ending ending);
  void answer(Work& work, int batch_idx);
  [[nodiscard]] bool sample(Work& work, int batch_idx);
  [[nodiscard]] std::optional<Ending> add_text(Active& worker, Token token) const;
  void read_prompt_logprobs(Active& active, const Work& work, int first_batch_idx);
  void end(Active& active, Ending ending);
  void share(Active& donor);

  Model& model_;
  const Vocabulary& vocabulary_;
  LlamaCells cells_;
  SchedulerState state_;
  PrefixCache prefixes_;
  CellReserve reserve_;
  const std::unique_ptr<PrefixStrategy> memory_;
  std::unique_ptr<DiskPrefixes> disk_;  // null: nothing is kept on disk
  std::deque<RequestId> arriving_;      // wait while the disk has more of their prompts than memory
  RequestId loading_for_ = 0;
  SeenPrefixes seen_;
  PrefillControl control_;
  Speculation speculation_;
  ImageEncoder* const image_encoder_;
  std::map<RequestId, std::unique_ptr<Active>> actives_;
  std::vector<SeqId> free_ids_;
  std::vector<RequestId> ended_;  // in this step
  llama_batch batch_;
  RunnerStats stats_;
  std::function<int(const llama_batch&)> fault_;
};

}  // namespace slipstream
