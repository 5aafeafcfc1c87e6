#include "device/kv_buffer/cold_options.h"

#include <algorithm>

#include "base/format.h"
#include "device/option_values.h"

namespace slipstream::turbo {

Result<ColdOptions> parse_cold_options(std::string_view text) {
  ColdOptions options;
  const std::string_view size = text.substr(0, text.find(','));
  const Result<std::uint64_t> memory_bytes = parse_size(size, "the memory of a KV cache");
  if (!memory_bytes) return std::unexpected(memory_bytes.error());
  options.memory_bytes = *memory_bytes;
  text.remove_prefix(size.size());
  while (!text.empty()) {
    text.remove_prefix(1);  // the comma
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(word.size());
    const std::string_view value = word.substr(std::min(word.find('=') + 1, word.size()));
    if (word.starts_with("dir=") && !value.empty()) {
      options.directory = value;
    } else if (word.starts_with("io=")) {
      const Result<ReadMethod> way = parse_read_method(value);
      if (!way) return std::unexpected(way.error());
      options.way = *way;
    } else {
      return fail(Code::kInvalidArgument,
                  format_text("\"{}\" is nothing that can be chosen for the memory of a KV cache: "
                              "dir=DIR, io=direct|buffered|pread",
                              word));
    }
  }
  return options;
}

}  // namespace slipstream::turbo
