// ExpertStore: the experts of one model, which stay in its file, and the memory for those that are
// in use.
//
// The model's loader hands over each expert tensor; only its place in the file is kept. The first
// graph divides the memory budget: every layer gets the same number of slots, so that no layer
// starves another, and never more slots than it has experts.
//
// Threads: the thread that computes a graph holds lock() while it runs; counters are thread-safe.
// Errors:  kUnsupported if a tensor's file is not known or too short, reported at the first graph,
//          because ggml's loader takes no result; kNotFound, kOutOfMemory, kIo.
#pragma once

#include <ggml.h>

#include <atomic>
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

  // Adds a tensor of the model. Its bytes are not kept.
  void add(const ggml_tensor* tensor, std::span<const std::byte> bytes);
  // Called if memory ran out in add(): every later prepare() fails.
  void give_up() noexcept { has_given_up_ = true; }
  // Copies what a tensor holds at [offset, offset + into.size()) from its file.
  [[nodiscard]] Result<void> read(const ggml_tensor* tensor, std::span<std::byte> into,
                                  std::size_t offset);

  // Called before each graph; the first call allocates the memory.
  [[nodiscard]] Result<void> prepare();
  struct Found {
    ExpertLayer* layer;
    ExpertMatrix* matrix;
  };
  // Finds a tensor by its address; the layer is null if the store does not have it.
  [[nodiscard]] Found find(const ggml_tensor* tensor);
  // The layer with this number; null: it has no experts here.
  [[nodiscard]] ExpertLayer* find_layer(int layer);
  [[nodiscard]] SlabReader& reader() { return reader_; }

  // The counters by layer, as of the end of the last graph.
  [[nodiscard]] std::map<int, ExpertCounters> counters() const;
  void publish_counters();

  // Called at the end: logs the totals and writes the trace.
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
  std::atomic<bool> has_given_up_ = false;
  bool is_prepared_ = false;
  SlabReader reader_;

  mutable std::mutex counters_mutex_;
  std::map<int, ExpertCounters> published_;
};

}  // namespace slipstream::turbo
