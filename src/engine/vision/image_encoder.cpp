#include "engine/vision/image_encoder.h"

#include <algorithm>

#include "engine/vision/vision.h"

namespace slipstream {

ImageEncoder::ImageEncoder(Vision& vision)
    : vision_(vision), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ImageEncoder::ask(const std::shared_ptr<ImageRows>& rows) {
  {
    const MutexLock lock(mutex_);
    const auto is_it = [&](const std::weak_ptr<ImageRows>& asked) {
      return !asked.owner_before(rows) && !rows.owner_before(asked);
    };
    if (std::ranges::any_of(queue_, is_it)) return;
    queue_.push_back(rows);
  }
  has_work_.notify_one();
}

void ImageEncoder::run(const std::stop_token& stop) {
  while (const std::shared_ptr<ImageRows> rows = next(stop)) {
    if (rows->state() == ImageRows::State::kPixels) vision_.encode(*rows);
  }
}

// Null: it is time to stop.
std::shared_ptr<ImageRows> ImageEncoder::next(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const auto has_work = [this]() SLIP_TSA(no_thread_safety_analysis) { return !queue_.empty(); };
  while (has_work_.wait(mutex_, stop, has_work) && !stop.stop_requested()) {
    std::shared_ptr<ImageRows> rows = queue_.front().lock();
    queue_.pop_front();
    if (rows) return rows;
  }
  return nullptr;
}

}  // namespace slipstream
