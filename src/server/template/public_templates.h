// For tests: the chat templates of public models, if they are available (tests/README.md).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace slipstream {

struct PublicTemplate {
  std::string model;
  std::string source;
};

// Sorted by name; empty if they are not available.
inline std::vector<PublicTemplate> public_templates() {
  const char* data = std::getenv("SLIPSTREAM_TEST_DATA");
  const auto folder = std::filesystem::path(data != nullptr ? data : TEST_DATA) / "templates";
  std::vector<PublicTemplate> all;
  if (!std::filesystem::is_directory(folder)) return all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    std::ifstream file(entry.path());
    all.push_back({entry.path().stem(), std::string(std::istreambuf_iterator<char>(file), {})});
  }
  std::ranges::sort(all, {}, &PublicTemplate::model);
  return all;
}

}  // namespace slipstream
