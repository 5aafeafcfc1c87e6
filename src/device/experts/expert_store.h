// ExpertStore: the experts of one model, which stay in its file, and the memory that holds those in
// use.
//
// The model's loader hands over each expert tensor; only its place in the file is kept. The budget
// is dealt out when the first graph comes: the same number of slots for every layer, so that no
// layer starves another. Slots for all experts of a layer are never exceeded.
//
// Threads: whoever computes holds lock() for as long as the graph runs; counters are thread-safe.
// Errors:  kNotFound, kCorrupt for tensors whose file is not known or too short: said at the first
//          graph, because ggml's loader takes no answer; kOutOfMemory, kIo.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/experts/expert_layer.h"
#include "device/experts/expert_options.h"

namespace slipstream::turbo {

class ExpertStore {
 public:
  explicit ExpertStore(ExpertOptions options);
  ~ExpertStore() = default;
  ExpertStore(const ExpertStore&) = delete;
  ExpertStore& operator=(const ExpertStore&) = delete;

  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  [[nodiscard]] const ExpertOptions& options() const { return options_; }

  // A tensor of the model and its bytes, which are not kept.
  void add(const ggml_tensor* tensor, std::span<const std::byte> bytes);
  // Copies what a tensor holds at [offset, offset + into.size()) from its file.
  [[nodiscard]] Result<void> read(const ggml_tensor* tensor, std::span<std::byte> into,
                                  std::size_t offset);

  // Before each graph: deals out the memory at the first.
  [[nodiscard]] Result<void> prepare();
  struct Found {
    ExpertLayer* layer;
    ExpertMatrix* matrix;
  };
  // By the tensor's address; the layer is null if it is none of ours.
  [[nodiscard]] Found find(const ggml_tensor* tensor);
  // The layer of that number; null: it has no experts here.
  [[nodiscard]] ExpertLayer* find_layer(int layer);
  [[nodiscard]] SlabReader& reader() { return reader_; }

  // By layer, as of the end of the last graph.
  [[nodiscard]] std::map<int, ExpertCounters> counters() const;
  void publish_counters();

  // At the end: says in the log what there was, and writes the trace.
  void close();

 private:
  [[nodiscard]] Result<const DataFile*> open_once(const std::string& path);
  void pin_from_file();
  void write_trace() const;
  void log_totals() const;

  const ExpertOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DataFile>> files_;
  std::map<int, ExpertLayer> layers_;
  std::map<const void*, Found> by_address_;
  std::string failure_;  // the first tensor that could not be added, and why
  bool is_prepared_ = false;
  SlabReader reader_;

  mutable std::mutex counters_mutex_;
  std::map<int, ExpertCounters> published_;
};

}  // namespace slipstream::turbo
