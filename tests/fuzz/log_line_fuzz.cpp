// Whatever bytes a value holds, the log line is one printable line that splits back into them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"
#include "harness.h"

namespace {

// Undoes the escaping of one value at the front of `text`.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    value = text.substr(0, text.find(' '));
    text.remove_prefix(value.size());
    return value;
  }
  text.remove_prefix(1);
  while (!text.starts_with('"')) {
    if (text.starts_with("\\x")) {
      value += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
      text.remove_prefix(4);
      continue;
    }
    if (text.starts_with('\\')) text.remove_prefix(1);
    value += text.front();
    text.remove_prefix(1);
  }
  text.remove_prefix(1);
  return value;
}

void expect(std::string_view& text, std::string_view prefix) {
  SLIP_CHECK(text.starts_with(prefix), "the line has another form");
  text.remove_prefix(prefix.size());
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const std::string_view first = input.substr(0, n_bytes / 2);
  const std::string_view second = input.substr(n_bytes / 2);
  const slipstream::log::Field fields[] = {{"value", second}};
  const std::string line = slipstream::log::format_line("fuzz", fields, first);

  for (const char c : line) {
    SLIP_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a control character");
  }
  std::string_view rest = line;
  expect(rest, "event=fuzz request=");
  SLIP_CHECK(take_value(rest) == first, "the request id came back changed");
  if (rest == " n_fields_dropped=1") return 0;
  SLIP_CHECK(line.size() <= slipstream::kLimits.log_line_bytes_max, "the line is too long");
  expect(rest, " value=");
  SLIP_CHECK(take_value(rest) == second, "the value came back changed");
  SLIP_CHECK(rest.empty(), "something follows the last value");
  return 0;
}
