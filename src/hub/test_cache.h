// For tests: a cache in a folder that is removed when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "hub/cache_layout.h"

namespace slipstream::hub {

class TestCache {
 public:
  TestCache() {
    std::string pattern = testing::TempDir() + "slipstream-hub-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestCache() { std::filesystem::remove_all(path_); }
  TestCache(const TestCache&) = delete;
  TestCache& operator=(const TestCache&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // A hash that does not match any content: 64 times the digit.
  static ContentHash hash(char digit) {
    return {.kind = ContentHash::Kind::kSha256, .hex = std::string(64, digit)};
  }
  static std::string commit(char digit) { return std::string(40, digit); }
  static ModelName name(const char* text) { return parse_model_name(text).value(); }

  // Leaves the files as a download would.
  void install(const ModelName& model, const std::string& commit, const std::string& file,
               char digit, std::size_t n_bytes = 8192) const {
    const RepoCache cache(path_, model);
    ASSERT_TRUE(cache.make_folders());
    write(cache.blob(hash(digit)), std::string(n_bytes, 'x'));
    ASSERT_TRUE(cache.link(commit, file, hash(digit)));
    ASSERT_TRUE(cache.set_main_commit(commit));
  }
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace slipstream::hub
