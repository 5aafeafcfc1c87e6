// Formats a set of layers for messages: "0-5, 7".
//
// Threads: thread-safe.
#pragma once

#include <set>
#include <string>

#include "base/format.h"

namespace slipstream::turbo {

inline std::string format_layers(const std::set<int>& layers) {
  std::string text;
  for (auto it = layers.begin(); it != layers.end();) {
    const int first = *it;
    int last = first;
    while (++it != layers.end() && *it == last + 1) last = *it;
    text += text.empty() ? "" : ", ";
    text += first == last ? std::to_string(first) : format_text("{}-{}", first, last);
  }
  return text;
}

}  // namespace slipstream::turbo
