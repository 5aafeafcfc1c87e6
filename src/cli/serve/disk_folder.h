// disk_folder(): the folder of one model under --kv-disk, where several models share it.
//
// Threads: pure function. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace slipstream::serve {

// "org/repo:Q8_0" becomes the name of a single folder, "org%2Frepo:Q8_0". Different names have
// different folders: two models in one would remove each other's prefixes.
[[nodiscard]] inline std::string disk_folder(std::string_view name) {
  std::string folder;
  for (const char c : name) {
    switch (c) {
      case '/': folder += "%2F"; break;
      case '%': folder += "%25"; break;
      default: folder += c;
    }
  }
  return folder;
}

}  // namespace slipstream::serve
