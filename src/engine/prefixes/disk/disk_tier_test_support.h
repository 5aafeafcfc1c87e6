// Support for tests of the disk tier: a temporary directory, and prefixes whose states are computed
// from their numbers, so that another process can check what it reads.
//
// Threads: thread-compatible. Errors: a failed check.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/prefixes/disk/prefix_file.h"
#include "engine/request.h"

namespace slipstream {

inline constexpr Fingerprint kFingerprint = {std::byte{1}, std::byte{2}, std::byte{3}};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "slipstream-disk-tier-XXXXXX";
    SLIP_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot make a temporary directory");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Different numbers give prefixes that differ from the first token on.
inline std::vector<Token> sample_tokens(std::uint64_t number) {
  std::vector<Token> tokens(5 + number % 50);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<Token>(number * 1000 + i);
  }
  return tokens;
}

// Noise, which does not compress.
inline std::vector<std::byte> sample_state(std::uint64_t number, std::size_t n_bytes) {
  std::mt19937_64 random(number);
  std::vector<std::byte> state(n_bytes);
  for (std::size_t i = 0; i < n_bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t eight = random();
    std::memcpy(state.data() + i, &eight, std::min(sizeof(eight), n_bytes - i));
  }
  return state;
}

inline std::vector<char> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file_bytes(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace slipstream
