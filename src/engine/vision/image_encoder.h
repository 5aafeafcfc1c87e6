// ImageEncoder: the thread that computes rows of images, so that the engine's thread goes on with the
// answers of others meanwhile.
//
// Threads: ask() is called by the engine's thread. Errors: none; the rows say why they failed.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <stop_token>
#include <thread>

#include "base/mutex.h"
#include "engine/vision/image_rows.h"

namespace slipstream {

class Vision;

class ImageEncoder {
 public:
  explicit ImageEncoder(Vision& vision);

  // In the order of the calls; each only once. What nobody holds any more is left out.
  void ask(const std::shared_ptr<ImageRows>& rows);

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] std::shared_ptr<ImageRows> next(const std::stop_token& stop);

  Vision& vision_;
  Mutex mutex_;
  std::condition_variable_any has_work_;
  // As many as running and waiting requests have at most.
  std::deque<std::weak_ptr<ImageRows>> queue_ SLIP_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses all members above
};

}  // namespace slipstream
