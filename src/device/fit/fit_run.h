// FitRun: a run of the model whose keys and queries are looked at, so that a profile can be made.
//
// A device has one while keys are fitted: every graph adds to it (gather_nodes.h), and the file is
// written whenever a backend is freed, and at the end. Graphs share it: they may be under way in
// another thread when it ends.
//
// Threads: thread-safe. Errors: as of profile_file.h.
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

  // Where to add the keys and queries of the layer whose cache a FLASH_ATTN_EXT reads; lives as
  // long as this. Null where a layer is refused, or is one of a second model.
  KeyMoments* layer(const ggml_tensor* attention, int layer);
  // Keys of this layer are not fitted; the log will say why.
  void refuse(int layer, const std::string& why);

  [[nodiscard]] KeyProfile profile() const;
  // Writes the file and says so in the log, unless nothing was seen since the last time. How many
  // layers are fitted.
  Result<std::size_t> save();
  // The same for the last time: graphs under way may still add to it, and nobody will read that.
  Result<std::size_t> end();

 private:
  struct Layer {
    LayerPrint print;
    std::unique_ptr<KeyMoments> moments;
    std::string refusal;
  };

  [[nodiscard]] std::int64_t count_keys() const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] KeyProfile fitted() const SLIP_TSA(requires_capability(mutex_));

  std::string path_;
  mutable Mutex mutex_;
  std::map<int, Layer> layers_ SLIP_GUARDED_BY(mutex_);
  std::int64_t n_keys_saved_ SLIP_GUARDED_BY(mutex_) = 0;
  std::size_t n_layers_saved_ SLIP_GUARDED_BY(mutex_) = 0;
  bool has_ended_ SLIP_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream::turbo
