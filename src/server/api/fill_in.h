// FillIn: a place between two texts, for a model that fills it.
//
// Threads: plain data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

struct FillIn {
  // A part of another file. The nearest to the place comes last.
  struct Chunk {
    std::string filename;
    std::string text;
  };
  std::string prefix;  // before the place, without the line
  std::string line;    // of the place, up to it; prefix and line are split into tokens apart
  std::string suffix;
  std::vector<Chunk> extra = {};
  // Of the fields, for errors.
  std::string_view prefix_name = "input_prefix";
  std::string_view suffix_name = "input_suffix";
};

}  // namespace slipstream
