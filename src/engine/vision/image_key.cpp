#include "engine/vision/image_key.h"

#include <boost/hash2/sha2.hpp>
#include <cstring>
#include <string_view>

namespace slipstream {
namespace {

// Raise it whenever the same image and projector give other cells.
constexpr std::string_view kImageVersion = "slipstream image 1";

ImageKey key_of(boost::hash2::sha2_256& hash) {
  const auto digest = hash.result();
  ImageKey key;
  static_assert(sizeof(digest) == sizeof(key));
  std::memcpy(key.data(), digest.data(), sizeof(key));
  return key;
}

}  // namespace

ImageKey image_key(std::span<const std::byte> projector, std::span<const std::byte> file) {
  boost::hash2::sha2_256 hash;
  hash.update(kImageVersion.data(), kImageVersion.size());
  const std::uint64_t n_bytes = projector.size();
  hash.update(&n_bytes, sizeof(n_bytes));
  hash.update(projector.data(), projector.size());
  hash.update(file.data(), file.size());
  return key_of(hash);
}

ImageKey part_key(const ImageKey& image, std::uint32_t part) {
  boost::hash2::sha2_256 hash;
  hash.update(image.data(), sizeof(image));
  hash.update(&part, sizeof(part));
  return key_of(hash);
}

std::vector<Token> cell_tokens(const ImageKey& key, int n_cells) {
  std::vector<Token> tokens;
  tokens.reserve(static_cast<std::size_t>(n_cells));
  for (int i = 0; i < n_cells; ++i) {
    const std::uint32_t word = key[static_cast<std::size_t>(i) % key.size()] & 0x7FFFFFFFU;
    tokens.push_back(-1 - static_cast<Token>(word));
  }
  return tokens;
}

}  // namespace slipstream
