// Plain text, the default of --text: everyday English sentences combined by a program, the
// same every time. It is easy for a model, so perplexity on it is only useful for comparison.
// Divergences from f16 tell as much as on any other text.
//
// Threads: thread-safe. Errors: text_or_ours(): those of the file.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace slipstream::quality {

// Returns n_bytes or up to a paragraph more. It contains no word of name_words().
[[nodiscard]] std::string plain_text(std::size_t n_bytes);

// The size of the text that eval reads without --text.
inline constexpr std::size_t kPlainTextBytes = 160 << 10;

// The file's text; without a file, plain_text() of kPlainTextBytes.
[[nodiscard]] Result<std::string> text_or_ours(const std::string& path);

}  // namespace slipstream::quality
