#include "server/schema/schema_error.h"

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::string_view kStart = "schema, ";

// Cuts to kBytesMax bytes, but not inside a character, because messages are sent as JSON.
std::string shortened(std::string_view pointer) {
  constexpr std::size_t kBytesMax = 200;
  if (pointer.size() <= kBytesMax) return std::string(pointer);
  std::size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(pointer[end]) & 0xC0U) == 0x80) --end;
  return std::string(pointer.substr(0, end)) + "...";
}

}  // namespace

std::unexpected<Error> refuse(Code code, std::string_view pointer, std::string_view message) {
  return fail(code, format_text("{}#{}: {}", kStart, shortened(pointer), message));
}

std::unexpected<Error> refuse(std::string_view pointer, const Error& error) {
  if (error.message.starts_with(kStart)) return std::unexpected(error);
  return refuse(error.code, pointer, error.message);
}

std::string pointer_to(std::string_view pointer, std::string_view step) {
  std::string longer(pointer);
  longer += '/';
  for (const char c : step) {
    if (c == '~') {
      longer += "~0";
    } else if (c == '/') {
      longer += "~1";
    } else {
      longer += c;
    }
  }
  return longer;
}

}  // namespace slipstream
