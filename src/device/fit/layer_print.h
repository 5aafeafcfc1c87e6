// LayerPrint: how the device, which never sees the model's file, knows a layer again: the hash of
// a weight that its queries pass through, such as the norm before them. Those are f32 whatever the
// model is quantised to, and no backend repacks them; so all quantisations of a model share one.
//
// Threads: thread-safe.
#pragma once

#include <ggml.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace slipstream::turbo {

using LayerPrint = std::array<std::byte, 32>;  // SHA-256

// Of the layer whose queries a FLASH_ATTN_EXT reads; nothing where it has no such weight.
[[nodiscard]] std::optional<LayerPrint> print_of(const ggml_tensor* attention, int layer);

// The first eight digits: enough to tell two models apart in a log.
[[nodiscard]] std::string short_text(const LayerPrint& print);

}  // namespace slipstream::turbo
