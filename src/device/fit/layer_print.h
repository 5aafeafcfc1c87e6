// LayerPrint: a fingerprint by which the device, which never sees the model's file, recognises a
// layer. It is the hash of a weight that the layer's queries pass through, such as the norm before
// them. Such a weight is f32 in every quantisation of a model, and no backend repacks it. So all
// quantisations of a model share one print.
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

// The print of the layer whose queries a FLASH_ATTN_EXT reads; nullopt if it has no such weight.
[[nodiscard]] std::optional<LayerPrint> print_of(const ggml_tensor* attention, int layer);

// The first eight hex digits, which are enough to tell two models apart in a log.
[[nodiscard]] std::string short_text(const LayerPrint& print);

}  // namespace slipstream::turbo
