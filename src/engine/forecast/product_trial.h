// Tries on this machine how fast our own products are for a model's types of weights, against
// stock's best layout for each: many columns, as a prompt has, and one, as decoding has.
//
// Layouts are made when a model is loaded, so this must be known before. It takes some tenths of a
// second. Small models are not tried: they are read fast enough.
//
// Threads: thread-safe. Errors: those of gguf_model.h and of the plugin; kUnsupported while ggml has
// no CPU backend loaded; kOutOfMemory.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "engine/model/turbo_device.h"

namespace slipstream {

struct ProductTrial {
  double prompt = 0;  // how many times as fast as stock
  double decode = 0;

  // Prompts have to gain clearly. In decoding a loss within what is measured is allowed.
  [[nodiscard]] bool pays() const { return prompt >= 1.2 && decode >= 0.95; }
};

// nullopt: the model is too small to be tried.
[[nodiscard]] Result<std::optional<ProductTrial>> try_products(const std::filesystem::path& model,
                                                               const std::filesystem::path& plugin,
                                                               int n_threads);

}  // namespace slipstream
