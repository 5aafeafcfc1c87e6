// Plain text of our own, the default of --text: everyday English sentences put together by a
// program, the same every time. A model finds it easy, so that perplexity on it says little beyond
// comparison; divergences from f16 are as telling as on any text.
//
// Threads: thread-safe. Errors: text_or_ours(): as of the file.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace slipstream::quality {

// Of n_bytes or a paragraph more. No word of it is in name_words().
[[nodiscard]] std::string plain_text(std::size_t n_bytes);

// What eval reads without --text.
inline constexpr std::size_t kPlainTextBytes = 160 << 10;

// A file's; of no file: ours, of kPlainTextBytes.
[[nodiscard]] Result<std::string> text_or_ours(const std::string& path);

}  // namespace slipstream::quality
