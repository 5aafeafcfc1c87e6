#include "bench/speed/cell_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/memory_info.h"
#include "base/unique_fd.h"
#include "bench/speed/kept_depth.h"
#include "engine/forecast/memory_forecast.h"
#include "engine/model/llama_log.h"
#include "engine/model/model.h"
#include "engine/text/vocabulary.h"

namespace slipstream::bench {
namespace {

using Clock = std::chrono::steady_clock;

// This many tokens of a prompt are computed at a time, as in llama-bench.
constexpr int kStepTokens = 512;
// Beyond so many cells fewer are: the mask of attention has a number for each cell and token of a step.
constexpr std::int64_t kDeepCells = std::int64_t{512} << 10;
constexpr int kDeepStepTokens = 128;
// The share of a cell's time for filling its depth; used only for the progress bar.
constexpr double kFillShare = 0.7;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Measures the time since its construction, and how much of the cores this process had.
class Stretch {
 public:
  [[nodiscard]] double seconds() const { return seconds_since(start_); }
  [[nodiscard]] double cpu_share(int n_threads) const {
    return (cpu_seconds() - cpu_before_) / (seconds() * n_threads);
  }

 private:
  Clock::time_point start_ = Clock::now();
  double cpu_before_ = cpu_seconds();
};

std::uint64_t resident_bytes() {
  const Result<std::string> status = read_small_file("/proc/self/status");
  constexpr std::string_view kField = "VmRSS:";
  const std::size_t at = status ? status->find(kField) : std::string::npos;
  if (at == std::string::npos) return 0;
  return std::strtoull(status->c_str() + at + kField.size(), nullptr, 10) * 1024;
}

class Batch {
 public:
  explicit Batch(int n_tokens_max) : batch_(llama_batch_init(n_tokens_max, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void clear() { batch_.n_tokens = 0; }
  void add(Token token, int position, SeqId sequence, bool wants_logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = token;
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = static_cast<std::int8_t>(wants_logits);
  }
  [[nodiscard]] int size() const { return batch_.n_tokens; }
  [[nodiscard]] Result<void> decode(llama_context* context) const {
    const int code = llama_decode(context, batch_);
    llama_synchronize(context);
    if (code == 0) return {};
    return fail(Code::kUnsupported, format_text("libllama could not compute a batch (code {}): {}",
                                                code, take_llama_complaint()));
  }

 private:
  llama_batch batch_;
};

// Whether the cache is one for all sequences. A cache that is filled by repeating has to be.
bool shares_cells(const CellTask& task) {
  return task.cell.shares_depth || n_computed(task.cell, task.n_computed_max) < task.cell.depth;
}

// The state of a cache does not depend on how weights are laid out. Without flash attention, libllama
// lays values out differently.
std::filesystem::path state_path(const CellTask& task) {
  std::string name(cache_scheme(task.cell.kv));
  if (!has_flash_attention(task.cell.kv)) name += kNoFlashAttention;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return task.states / format_text("{}.state", name);
}

class CellRun {
 public:
  CellRun(const CellTask& task, Model model, std::vector<Token> text,
          const std::function<void(double)>& on_progress)
      : task_(task),
        n_step_tokens_(static_cast<int>(llama_n_batch(model.context()))),
        model_(std::move(model)),
        text_(std::move(text)),
        on_progress_(on_progress),
        batch_(n_step_tokens_),
        kept_(model_.context(), state_path(task), shares_cells(task) ? 1 : task.cell.n_sequences) {}

  Result<CellFigures> run() {
    CellFigures figures;
    Result<void> done = fill(figures);
    if (done) done = warm_up();
    if (done) done = prefill(figures);
    if (done) done = rewind();
    if (done) done = decode(figures);
    if (!done) return std::unexpected(done.error());
    figures.rss_bytes = resident_bytes();
    return figures;
  }

 private:
  [[nodiscard]] llama_memory_t memory() const { return llama_get_memory(model_.context()); }
  // All sequences share the text up to the depth; after it, each has its own. A short
  // text is repeated.
  [[nodiscard]] Token token_at(int position, int sequence) const {
    const int stride = task_.n_prompt + task_.n_tokens;
    const auto place = static_cast<std::size_t>(position) +
                       (position < task_.cell.depth ? 0
                                                    : static_cast<std::size_t>(sequence) *
                                                          static_cast<std::size_t>(stride));
    return text_[place % text_.size()];
  }
  [[nodiscard]] int n_computed_here() const { return n_computed(task_.cell, task_.n_computed_max); }

  // --- the depth

  Result<void> fill(CellFigures& figures) {
    if (task_.cell.depth == 0) return {};
    if (kept_.restore()) return repeat();
    const Clock::time_point start = Clock::now();
    const int n_tokens = n_computed_here();
    for (int position = 0; position < n_tokens;) {
      batch_.clear();
      const int end = std::min(position + n_step_tokens_, n_tokens);
      for (; position < end; ++position) {
        batch_.add(token_at(position, 0), position, 0, position + 1 == n_tokens);
      }
      if (const Result<void> done = batch_.decode(model_.context()); !done) return done;
      on_progress_(kFillShare * position / n_tokens);
    }
    figures.fill_seconds = seconds_since(start);
    if (const Result<void> kept = kept_.keep(); !kept) return kept;
    return repeat();
  }

  // Fills the depth behind what was computed, and gives it to every sequence.
  Result<void> repeat() {
    const auto on_progress = [this](int n_tokens) {
      on_progress_(kFillShare * n_tokens / task_.cell.depth);
    };
    if (Result<void> done =
            kept_.repeat(n_computed_here(), task_.cell.depth, task_.cell.n_sequences, on_progress);
        !done) {
      return done;
    }
    for (SeqId sequence = 1; sequence < task_.cell.n_sequences; ++sequence) {
      llama_memory_seq_cp(memory(), 0, sequence, -1, -1);
    }
    return {};
  }

  // Goes back to the depth. A recurrent state cannot be cut and is restored instead.
  Result<void> rewind() {
    bool was_cut = true;
    for (SeqId sequence = 0; sequence < task_.cell.n_sequences; ++sequence) {
      was_cut = llama_memory_seq_rm(memory(), sequence, task_.cell.depth, -1) && was_cut;
    }
    if (was_cut) return {};
    llama_memory_clear(memory(), false);
    if (task_.cell.depth == 0) return {};
    if (kept_.restore()) return repeat();
    return fail(Code::kUnsupported,
                format_text("the depth kept in {} cannot be restored: {}",
                            state_path(task_).string(), take_llama_complaint()));
  }

  // --- what is measured

  Result<void> step(int position) {
    batch_.clear();
    for (SeqId sequence = 0; sequence < task_.cell.n_sequences; ++sequence) {
      batch_.add(token_at(position, sequence), position, sequence, true);
    }
    return batch_.decode(model_.context());
  }

  Result<void> warm_up() {
    if (const Result<void> done = step(task_.cell.depth); !done) return done;
    return rewind();
  }

  Result<void> prefill(CellFigures& figures) {
    const int n_each = std::max(1, task_.n_prompt / task_.cell.n_sequences);
    const int end = task_.cell.depth + n_each;
    const Stretch stretch;
    batch_.clear();
    for (SeqId sequence = 0; sequence < task_.cell.n_sequences; ++sequence) {
      for (int position = task_.cell.depth; position < end; ++position) {
        batch_.add(token_at(position, sequence), position, sequence, position + 1 == end);
        if (batch_.size() < n_step_tokens_) continue;
        if (const Result<void> done = batch_.decode(model_.context()); !done) return done;
        batch_.clear();
      }
    }
    if (batch_.size() > 0) {
      if (const Result<void> done = batch_.decode(model_.context()); !done) return done;
    }
    figures.prefill_tokens_per_s = n_each * task_.cell.n_sequences / stretch.seconds();
    figures.cpu_share = stretch.cpu_share(task_.n_threads);
    on_progress_(kFillShare + 0.1);
    return {};
  }

  Result<void> decode(CellFigures& figures) {
    const Stretch stretch;
    for (int i = 0; i < task_.n_tokens; ++i) {
      const Clock::time_point step_start = Clock::now();
      if (const Result<void> done = step(task_.cell.depth + i); !done) return done;
      figures.step_ms.push_back(seconds_since(step_start) * 1e3);
      on_progress_(kFillShare + 0.1 + (0.9 - kFillShare) * (i + 1) / task_.n_tokens);
    }
    figures.decode_tokens_per_s = task_.n_tokens * task_.cell.n_sequences / stretch.seconds();
    figures.cpu_share = std::min(figures.cpu_share, stretch.cpu_share(task_.n_threads));
    return {};
  }

  const CellTask& task_;
  const int n_step_tokens_;
  Model model_;
  std::vector<Token> text_;
  const std::function<void(double)>& on_progress_;
  Batch batch_;
  KeptDepth kept_;
};

Result<std::vector<Token>> read_tokens(const CellTask& task, const Model& model) {
  std::ifstream file(task.text, std::ios::binary);
  if (!file) return fail_errno(errno, format_text("cannot open {}", task.text.string()));
  const std::string text{std::istreambuf_iterator(file), std::istreambuf_iterator<char>()};
  const Result<Vocabulary> vocabulary = Vocabulary::create(model.model());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  Result<std::vector<Token>> tokens = vocabulary->tokenize(text, true, false);
  if (tokens && tokens->empty()) {
    return fail(Code::kInvalidArgument, format_text("{} has no text", task.text.string()));
  }
  return tokens;
}

// Returns the bytes of the cache; 0 if the forecast does not know the model. A context that does not
// fit would have this process, or another one, killed.
Result<std::uint64_t> check_memory(const CellTask& task, const KvScheme& scheme,
                                   const ContextShape& shape) {
  load_backends();
  const Result<MemoryForecast> needed = forecast(task.model, scheme, shape);
  const Result<std::uint64_t> available = available_memory();
  // Too many cells for any context; or a model that the forecast does not know.
  if (!needed && needed.error().code == Code::kInvalidArgument) {
    return std::unexpected(needed.error());
  }
  if (!needed) return 0;
  if (available && needed->total() > *available) {
    return fail(Code::kOutOfMemory,
                format_text("it needs {}, and {} are available", format_bytes(needed->total()),
                            format_bytes(*available)));
  }
  return needed->kv_bytes;
}

}  // namespace

Result<CellFigures> run_cell(const CellTask& task, const std::function<void(double)>& on_progress) {
  constexpr int kCellsOfBlock = 256;  // libllama's rounding
  const Cell& cell = task.cell;
  const bool is_shared = shares_cells(task);
  const int n_behind = std::max(task.n_prompt / cell.n_sequences + 1, task.n_tokens);
  const int n_own = n_behind + (is_shared ? 0 : cell.depth);
  const int n_each = (n_own + kCellsOfBlock - 1) / kCellsOfBlock * kCellsOfBlock;
  const std::int64_t n_cells =
      std::int64_t{n_each} * cell.n_sequences + (is_shared ? cell.depth : 0);
  const Result<KvScheme> scheme = parse_kv_scheme(cache_scheme(cell.kv));
  if (!scheme) return std::unexpected(scheme.error());
  const bool has_cold = scheme->attend() != 0;
  const int n_step_tokens = n_cells > kDeepCells ? kDeepStepTokens : kStepTokens;
  const Result<std::uint64_t> kv_bytes =
      check_memory(task, *scheme,
                   {.n_ctx = n_cells,
                    .n_sequences_max = cell.n_sequences,
                    .n_ubatch = n_step_tokens,
                    .kv_memory_bytes = has_cold ? task.kv_memory_bytes : 0});
  if (!kv_bytes) return std::unexpected(kv_bytes.error());
  const bool is_repeated = n_computed(cell, task.n_computed_max) < cell.depth;
  Result<Model> model = Model::load({.path = task.model,
                                     .kv = std::string(cache_scheme(cell.kv)),
                                     .plugin = task.plugin,
                                     .kv_memory = has_cold ? task.kv_memory : std::string(),
                                     .has_products = has_products(cell.kv),
                                     .is_repacked = is_repacked(cell.kv),
                                     .key_profile = task.key_profile,
                                     .rope = task.rope,
                                     .n_cells = static_cast<int>(n_cells),
                                     .n_sequences_max = cell.n_sequences + (is_repeated ? 1 : 0),
                                     .n_step_tokens_max = n_step_tokens,
                                     .n_outputs_max = cell.n_sequences,
                                     .n_threads = task.n_threads,
                                     .shares_cells = is_shared,
                                     .has_flash_attention = has_flash_attention(cell.kv),
                                     .on_progress = {}});
  if (!model) return std::unexpected(model.error());
  Result<std::vector<Token>> text = read_tokens(task, *model);
  if (!text) return std::unexpected(text.error());
  CellRun run(task, std::move(*model), std::move(*text), on_progress);
  Result<CellFigures> figures = run.run();
  if (figures) figures->kv_bytes = *kv_bytes;
  return figures;
}

}  // namespace slipstream::bench
