#include "server/http/target.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace slipstream {

std::string without_percents(std::string_view text) {
  if (text.empty()) return "";  // for length 0, libcurl would call strlen()
  int n_bytes = 0;
  const std::unique_ptr<char, decltype(&curl_free)> plain(
      curl_easy_unescape(nullptr, text.data(), static_cast<int>(text.size()), &n_bytes), curl_free);
  return plain == nullptr ? std::string(text)
                          : std::string(plain.get(), static_cast<std::size_t>(n_bytes));
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
