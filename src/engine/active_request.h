// Runner::Active: a request from its arrival to its end, as the runner sees it.
//
// Threads: owned by the engine's thread. Errors: none.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "engine/runner.h"

namespace slipstream {

struct Runner::Active {
  Job job;
  std::vector<Token> tokens = {};  // prompt and generated tokens
  Holding holding = {};
  Usage usage = {};
  Speculation::Drafting drafting = {};
  bool has_started = false;
  Event event = {};  // of this step
  std::chrono::steady_clock::time_point started = {};
  std::chrono::steady_clock::time_point answered = {};  // with its first token

  void count_token() {
    const auto now = std::chrono::steady_clock::now();
    if (usage.n_generated++ == 0) answered = now;
    usage.prompt_time = answered - started;
    usage.generation_time = now - answered;
  }
  // Whether a prompt token's output is needed: it gives the probability of the next prompt token.
  [[nodiscard]] bool judges(int position) const {
    return job.request.wants_prompt_logprobs && usage.n_generated == 0 &&
           position + 1 < usage.n_prompt;
  }
  // Null: it is no cell of an image.
  [[nodiscard]] const ImagePlace* image_at(int position) const {
    for (const ImagePlace& image : job.request.images) {
      if (position < image.first) return nullptr;
      if (position < image.end()) return &image;
    }
    return nullptr;
  }
  [[nodiscard]] bool has_images() const { return !job.request.images.empty(); }
  [[nodiscard]] std::span<const Token> computed() const {
    return std::span(tokens).first(static_cast<std::size_t>(holding.n_computed));
  }
};

}  // namespace slipstream
