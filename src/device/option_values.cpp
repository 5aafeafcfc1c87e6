#include "device/option_values.h"

#include <charconv>

#include "base/format.h"

namespace slipstream::turbo {

Result<std::uint64_t> parse_size(std::string_view text, std::string_view what) {
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
                format_text("\"{}\" is no size for {}: 6G, 512M", text, what));
  }
  return size << (10 * power);
}

Result<ReadMethod> parse_read_method(std::string_view name) {
  if (name == "direct") return ReadMethod::kUringDirect;
  if (name == "buffered") return ReadMethod::kUringBuffered;
  if (name == "pread") return ReadMethod::kPread;
  return fail(Code::kInvalidArgument,
              format_text("no way to read named \"{}\": direct, buffered or pread", name));
}

}  // namespace slipstream::turbo
