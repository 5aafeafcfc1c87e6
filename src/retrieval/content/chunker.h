// cut_into_chunks(): cuts a text into pieces that make sense alone: along functions and classes,
// headings and paragraphs, each of about RetrievalLimits::chunk_bytes.
//
// Every line that is not blank is in exactly one chunk. Where a piece can begin is a matter of degree: best where a
// symbol begins, with the comment above it; else after a blank line, the less indented the better.
// A line longer than a chunk may be is a chunk of its own, and is cut when it is shown.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/content/symbol.h"

namespace slipstream {

struct Chunk {
  int first_line = 1;
  int last_line = 1;
  std::size_t begin = 0;  // in the text, in bytes
  std::size_t end = 0;
  // The names of the symbols that begin in it, and of what it stands in: "Parser Parser::next".
  std::string names;
};

// symbols: in order of their lines.
[[nodiscard]] std::vector<Chunk> cut_into_chunks(std::string_view text,
                                                 std::span<const Symbol> symbols);

}  // namespace slipstream
