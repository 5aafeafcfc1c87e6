// ImageRows: a part of an image that is computed in place of tokens: first its pixels, then one row of
// numbers for each cell. ImagePlace: where in a prompt its cells are.
//
// Threads: made by any thread. One thread fills it (image_encoder.h), after which it does not change;
// others look at state() first. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"

struct mtmd_input_chunk;

namespace slipstream {

// Bytes that are held, of all that may be. They are given back at the end.
class HeldBytes {
 public:
  using Counter = std::shared_ptr<std::atomic<std::uint64_t>>;

  HeldBytes(Counter counter, std::uint64_t n) : counter_(std::move(counter)), n_(n) {
    *counter_ += n_;
  }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  ~HeldBytes() { *counter_ -= n_; }

 private:
  const Counter counter_;
  const std::uint64_t n_;
};

class ImageRows {
 public:
  enum class State : std::uint8_t { kPixels, kRows, kFailed };

  // A whole image is computed in one step, because its cells see each other.
  ImageRows(std::vector<Token> cells, bool is_whole, std::shared_ptr<const HeldBytes> held,
            std::shared_ptr<const mtmd_input_chunk> pixels)
      : cells_(std::move(cells)),
        is_whole_(is_whole),
        held_(std::move(held)),
        pixels_(std::move(pixels)) {}

  [[nodiscard]] std::span<const Token> cells() const { return cells_; }
  [[nodiscard]] int n_cells() const { return static_cast<int>(cells_.size()); }
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }

  // REQUIRES: state() is kRows.
  [[nodiscard]] std::span<const float> rows() const { return rows_; }
  // REQUIRES: state() is kFailed.
  [[nodiscard]] const std::string& why_failed() const { return why_failed_; }

  // The rest is for whoever fills it. Null after that.
  [[nodiscard]] const mtmd_input_chunk* pixels() const { return pixels_.get(); }
  void fill(std::vector<float> rows) {
    rows_ = std::move(rows);
    pixels_.reset();
    state_.store(State::kRows, std::memory_order_release);
  }
  void give_up(std::string why) {
    why_failed_ = std::move(why);
    pixels_.reset();
    state_.store(State::kFailed, std::memory_order_release);
  }

 private:
  const std::vector<Token> cells_;
  const bool is_whole_;
  const std::shared_ptr<const HeldBytes> held_;  // of the whole image
  std::shared_ptr<const mtmd_input_chunk> pixels_;
  std::vector<float> rows_;
  std::string why_failed_;
  std::atomic<State> state_ = State::kPixels;
};

struct ImagePlace {
  int first = 0;  // of the prompt's tokens
  std::shared_ptr<ImageRows> rows = {};

  [[nodiscard]] int end() const { return first + rows->n_cells(); }
};

}  // namespace slipstream
