#include "device/kv_buffer/cold_options.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace slipstream::turbo {
namespace {

// "6G", "6GiB", "512M", "65536": binary multiples.
Result<std::uint64_t> parse_memory(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  std::string_view unit(end, text.data() + text.size());
  if (unit.size() == 3 && unit.ends_with("iB")) unit.remove_suffix(2);
  const std::string_view units = "KMGT";
  const std::size_t power = unit.empty() ? 0 : units.find(unit.front()) + 1;
  const bool is_size = error == std::errc{} && size > 0 && unit.size() <= 1 &&
                       (unit.empty() || units.contains(unit.front())) &&
                       size <= (UINT64_MAX >> (10 * power));
  if (!is_size) {
    return fail(Code::kInvalidArgument,
                format_text("\"{}\" is no size for the memory of a KV cache: 6G, 512M", text));
  }
  return size << (10 * power);
}

Result<ReadMethod> parse_method(std::string_view name) {
  if (name == "direct") return ReadMethod::kUringDirect;
  if (name == "buffered") return ReadMethod::kUringBuffered;
  if (name == "pread") return ReadMethod::kPread;
  return fail(Code::kInvalidArgument,
              format_text("no way to read named \"{}\": direct, buffered or pread", name));
}

}  // namespace

Result<ColdOptions> parse_cold_options(std::string_view text) {
  ColdOptions options;
  const std::string_view size = text.substr(0, text.find(','));
  const Result<std::uint64_t> memory_bytes = parse_memory(size);
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
      const Result<ReadMethod> way = parse_method(value);
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
