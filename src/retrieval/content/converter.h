// Converters: programs that make text of documents: pdftotext, docx2txt, odt2txt.
//
// Documents come from anybody, and their formats are large. So a converter runs within limits of
// time and memory, and, where bubblewrap is installed and allowed, without a network and with
// nothing to see but the system's own programs.
//
// Threads: thread-safe.
// Errors:  convert(): kUnsupported, with a reason of a few words: which package is missing, or that
//          the document cannot be read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream {

struct Converter {
  std::string_view ending;  // of the names of its documents: ".pdf"
  const char* program;      // its path
  const char* package;      // that has it, in Debian
  // Arguments that make it read standard input and write UTF-8 to standard output.
  std::string_view arguments;
};

// By a file's name in lower case; null: no converter is needed, or none is known.
[[nodiscard]] const Converter* find_converter(std::string_view name);
[[nodiscard]] Result<std::string> convert(const Converter& converter, std::string_view document);

}  // namespace slipstream
