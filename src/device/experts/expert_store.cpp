#include "device/experts/expert_store.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/format.h"
#include "base/format_bytes.h"
#include "device/experts/extent.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

// The layer, 17, of "blk.17.ffn_up_exps.weight".
std::optional<int> layer_of(std::string_view tensor_name) {
  if (!tensor_name.starts_with("blk.")) return std::nullopt;
  tensor_name.remove_prefix(4);
  int layer = 0;
  const auto [end, error] =
      std::from_chars(tensor_name.data(), tensor_name.data() + tensor_name.size(), layer);
  if (error != std::errc{} || end == tensor_name.data()) return std::nullopt;
  return layer;
}

}  // namespace

ExpertStore::ExpertStore(ExpertOptions options)
    : options_(std::move(options)), reader_(options_.way) {}

void ExpertStore::close() {
  if (!is_prepared_) return;
  log_totals();
  write_trace();
}

Result<const DataFile*> ExpertStore::open_once(const std::string& path) {
  const auto found = std::ranges::find(files_, path, [](const auto& file) { return file->path; });
  if (found != files_.end()) return found->get();
  Result<DataFile> file = open_data_file(path, reader_.way());
  if (!file) return std::unexpected(std::move(file.error()));
  files_.push_back(std::make_unique<DataFile>(std::move(*file)));
  return files_.back().get();
}

void ExpertStore::add(const ggml_tensor* tensor, std::span<const std::byte> bytes) {
  const std::unique_lock held = lock();
  const std::optional<int> layer = layer_of(tensor->name);
  const Result<void> added = [&]() -> Result<void> {
    if (!layer || bytes.size() != ggml_nbytes(tensor)) {
      return fail(
          Code::kUnsupported,
          format_text("tensor {} is not handed over as a whole layer's experts", tensor->name));
    }
    Result<Extent> extent = find_extent(bytes, tensor->name);
    if (!extent) return std::unexpected(std::move(extent.error()));
    const Result<const DataFile*> file = open_once(extent->path);
    if (!file) return std::unexpected(file.error());
    const auto n_experts = static_cast<int>(tensor->ne[2]);
    ExpertLayer& of = layers_.try_emplace(*layer, *layer, n_experts).first->second;
    if (of.n_experts() != n_experts) {
      return fail(Code::kUnsupported,
                  format_text("layer {} has matrices of different numbers of experts", *layer));
    }
    of.add({.address = tensor->data,
            .name = tensor->name,
            .file = *file,
            .offset = extent->offset,
            .slab_bytes = tensor->nb[2],
            .arena = {}});
    // libllama asks the system to read ahead everything that it maps, so these pages are released.
    release_mapped_pages(bytes, *extent);
    return {};
  }();
  if (!added && failure_.empty()) failure_ = added.error().message;
}

Result<void> ExpertStore::prepare() {
  if (!failure_.empty()) return fail(Code::kUnsupported, failure_);
  if (has_given_up_) {
    return fail(Code::kOutOfMemory, "memory ran out while the experts were handed over");
  }
  if (is_prepared_) return {};
  std::size_t n_bytes_per_slot = 0;  // one slot in every layer
  int n_experts_max = 0;
  for (const auto& [number, layer] : layers_) {
    n_bytes_per_slot += layer.bytes_per_slot();
    n_experts_max = std::max(n_experts_max, layer.n_experts());
  }
  if (n_bytes_per_slot == 0) return fail(Code::kUnsupported, "no expert was handed over");
  const std::uint64_t n_slots = std::clamp<std::uint64_t>(options_.cache_bytes / n_bytes_per_slot,
                                                          1, static_cast<unsigned>(n_experts_max));
  if (options_.cache_bytes < n_bytes_per_slot) {
    log_line(GGML_LOG_LEVEL_WARN,
             format_text("an expert cache of {} does not hold one expert of each layer, which is "
                         "the least: {} are used",
                         format_bytes(options_.cache_bytes), format_bytes(n_bytes_per_slot)));
  }
  std::vector<std::span<std::byte>> areas;
  for (auto& [number, layer] : layers_) {
    Result<void> allocated = layer.allocate(static_cast<int>(n_slots), options_.policy);
    if (!allocated) return allocated;
    for (ExpertMatrix& matrix : layer.matrices()) {
      areas.push_back(matrix.arena.bytes());
      by_address_[matrix.address] = {.layer = &layer, .matrix = &matrix};
    }
  }
  reader_.register_memory(areas);
  is_prepared_ = true;
  if (!options_.pin_path.empty()) pin_from_file();
  const bool is_direct =
      std::ranges::all_of(files_, [](const auto& file) { return file->is_direct; });
  log_line(GGML_LOG_LEVEL_INFO,
           format_text("experts stay in the file: memory for {} of {} in each of {} layers, {}; "
                       "read with {}{}",
                       n_slots, n_experts_max, layers_.size(),
                       format_bytes(n_slots * n_bytes_per_slot), reader_.way_name(),
                       reader_.way() == ReadMethod::kUringDirect && !is_direct
                           ? " (not here: the file system refuses it)"
                           : ""));
  return {};
}

ExpertStore::Found ExpertStore::find(const ggml_tensor* tensor) {
  const auto found = by_address_.find(tensor->data);
  return found == by_address_.end() ? Found{} : found->second;
}

ExpertLayer* ExpertStore::find_layer(int layer) {
  const auto found = layers_.find(layer);
  return found == layers_.end() ? nullptr : &found->second;
}

Result<void> ExpertStore::read(const ggml_tensor* tensor, std::span<std::byte> into,
                               std::size_t offset) {
  const std::unique_lock held = lock();
  for (auto& [number, layer] : layers_) {
    for (const ExpertMatrix& matrix : layer.matrices()) {
      if (matrix.address != tensor->data) continue;
      const Result<UniqueFd> file = open_file(matrix.file->path, O_RDONLY);
      if (!file) return std::unexpected(file.error());
      return read_exactly(file->get(), into, matrix.offset + offset);
    }
  }
  return fail(Code::kNotFound, format_text("nothing is known of tensor {}", tensor->name));
}

std::map<int, ExpertCounters> ExpertStore::counters() const {
  const std::lock_guard held(counters_mutex_);
  return published_;
}

void ExpertStore::publish_counters() {
  const std::lock_guard held(counters_mutex_);
  for (auto& [number, layer] : layers_) {
    published_[number] = layer.counters();
    published_[number].layer = static_cast<std::uint64_t>(number);
  }
}

// The file has lines of "layer expert uses". At most half of the slots are pinned; the others adapt
// to the text.
void ExpertStore::pin_from_file() {
  struct Use {
    int layer;
    int expert;
    std::uint64_t n_uses;
  };
  std::vector<Use> uses;
  std::ifstream file(options_.pin_path);
  for (Use use{}; file >> use.layer >> use.expert >> use.n_uses;) uses.push_back(use);
  if (uses.empty()) {
    log_line(GGML_LOG_LEVEL_WARN,
             format_text("{} names no expert: nothing is pinned", options_.pin_path));
  }
  std::ranges::stable_sort(uses, std::ranges::greater{}, &Use::n_uses);
  std::map<int, int> n_pinned;
  for (const Use& use : uses) {
    ExpertLayer* layer = find_layer(use.layer);
    if (layer == nullptr || use.expert < 0 || use.expert >= layer->n_experts()) continue;
    if (n_pinned[use.layer]++ < layer->n_slots() / 2) layer->pin(use.expert);
  }
}

void ExpertStore::write_trace() const {
  if (options_.trace_path.empty()) return;
  std::ofstream file(options_.trace_path);
  for (const auto& [number, layer] : layers_) {
    for (std::size_t expert = 0; expert < layer.n_uses().size(); ++expert) {
      if (layer.n_uses()[expert] > 0) {
        file << number << ' ' << expert << ' ' << layer.n_uses()[expert] << '\n';
      }
    }
  }
  if (!file.flush()) {
    log_line(GGML_LOG_LEVEL_ERROR, format_text("cannot write {}", options_.trace_path));
  }
}

void ExpertStore::log_totals() const {
  ExpertCounters total;
  for (const auto& [number, counters] : counters()) {
    total += counters;
    log_line(
        GGML_LOG_LEVEL_DEBUG,
        format_text("layer {}: experts found {}, read {}, waited {:.2f} s", number, counters.n_hits,
                    counters.n_misses, static_cast<double>(counters.stall_ns) / 1e9));
  }
  const std::uint64_t n_needed = std::max<std::uint64_t>(total.n_hits + total.n_misses, 1);
  log_line(GGML_LOG_LEVEL_INFO,
           format_text("experts: {} needed, {:.1f} % found in memory, {} read, waited {:.2f} s for "
                       "them; {} read ahead, {} of those needed",
                       n_needed,
                       100.0 * static_cast<double>(total.n_hits) / static_cast<double>(n_needed),
                       format_bytes(total.n_bytes_read), static_cast<double>(total.stall_ns) / 1e9,
                       total.n_guessed, total.n_guessed_used));
}

}  // namespace slipstream::turbo
