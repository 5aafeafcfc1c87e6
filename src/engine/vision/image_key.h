// ImageKey: identifies what an image becomes, and stands for it among tokens.
//
// The engine's prefixes are tokens. An image has none, so each of its cells gets a number below 0 that
// no vocabulary has, made of a hash of its file and of the projector. So the same image continues the
// same prefix, on disk too, and another one never does: where all cells of an image agree, so do at
// least 124 bits of the hashes (kImageCellsMin).
//
// Threads: immutable. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace slipstream {

using ImageKey = std::array<std::uint32_t, 8>;

inline constexpr int kImageCellsMin = 4;

// projector: what identifies it, its fingerprint.
[[nodiscard]] ImageKey image_key(std::span<const std::byte> projector,
                                 std::span<const std::byte> file);
// Of a part of the image: projectors cut large images.
[[nodiscard]] ImageKey part_key(const ImageKey& image, std::uint32_t part);

[[nodiscard]] std::vector<Token> cell_tokens(const ImageKey& key, int n_cells);
[[nodiscard]] constexpr bool is_image_cell(Token token) { return token < 0; }

}  // namespace slipstream
