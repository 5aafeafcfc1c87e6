// FitRun: collects the keys and queries of a model while it runs, to make a profile of them.
//
// A device has a FitRun while keys are fitted. Every graph adds to it (gather_nodes.h). The file is
// written whenever a backend is freed, and at the end. Graphs share ownership, because another
// thread may still be computing one when the run ends.
//
// Threads: thread-safe. Errors: those of profile_file.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "device/fit/key_moments.h"
#include "device/fit/profile_file.h"

namespace slipstream::turbo {

class FitRun {
 public:
  explicit FitRun(std::string path) : path_(std::move(path)) {}
  ~FitRun();
  FitRun(const FitRun&) = delete;
  FitRun& operator=(const FitRun&) = delete;

  // The moments of the layer whose cache a FLASH_ATTN_EXT reads, to add its keys and queries to.
  // They live as long as the FitRun. Null if the layer is refused or belongs to a second model.
  KeyMoments* layer(const ggml_tensor* attention, int layer);
  // Refuses to fit the keys of this layer; save() logs why.
  void refuse(int layer, const std::string& why);

  [[nodiscard]] KeyProfile profile() const;
  // Writes the file and logs that, unless no keys were seen since the last time. Returns the number
  // of fitted layers.
  Result<std::size_t> save();
  // The same for the last time. What unfinished graphs add afterwards is ignored.
  Result<std::size_t> end();

 private:
  struct Layer {
    LayerPrint print;
    std::unique_ptr<KeyMoments> moments;
    std::string refusal;
  };

  [[nodiscard]] std::int64_t count_keys() const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] KeyProfile fitted() const SLIP_TSA(requires_capability(mutex_));
  void log_refusals(const KeyProfile& profile) const SLIP_TSA(requires_capability(mutex_));

  std::string path_;
  mutable Mutex mutex_;
  std::map<int, Layer> layers_ SLIP_GUARDED_BY(mutex_);
  std::int64_t n_keys_saved_ SLIP_GUARDED_BY(mutex_) = 0;
  std::size_t n_layers_saved_ SLIP_GUARDED_BY(mutex_) = 0;
  bool has_ended_ SLIP_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream::turbo
