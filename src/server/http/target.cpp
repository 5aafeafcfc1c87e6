#include "server/http/target.h"

#include <algorithm>
#include <charconv>

namespace slipstream {

std::string without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr == &text[i + 1] + 2;
    plain += is_escape ? static_cast<char>(byte) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

std::string query_value(std::string_view target, std::string_view name) {
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return "";
  for (std::string_view rest = target.substr(question + 1); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    std::string value(pair.substr(equals + 1));
    std::ranges::replace(value, '+', ' ');
    return without_percents(value);
  }
  return "";
}

}  // namespace slipstream
