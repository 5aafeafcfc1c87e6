#include "server/browser_guard.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

#include "base/format.h"

namespace slipstream {
namespace {

// Removes the port from "[::1]:8080" or "localhost:8080".
std::string_view name_of(std::string_view host) {
  const std::size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (end == std::string_view::npos) return host;
  return host.substr(0, host.starts_with('[') ? end + 1 : end);
}

bool contains_name(const auto& names, std::string_view name) {
  return std::ranges::any_of(
      names, [name](std::string_view other) { return boost::beast::iequals(other, name); });
}

bool is_address(std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  boost::system::error_code error;
  (void)boost::asio::ip::make_address(name, error);
  return !error;
}

}  // namespace

bool BrowserGuard::knows_host(std::string_view host) const {
  constexpr std::array<std::string_view, 3> kLocal = {"localhost", "127.0.0.1", "[::1]"};
  const std::string_view name = name_of(host);
  if (contains_name(options_.hosts, name) || std::ranges::contains(options_.hosts, "*"))
    return true;
  if (contains_name(kLocal, name)) return true;
  return !options_.is_local && (options_.answers_to_all || is_address(name));
}

ApiResult<std::string> BrowserGuard::check(std::string_view host, std::string_view origin) const {
  if (!host.empty() && !knows_host(host)) {
    return std::unexpected(ApiError{
        .status = 403,
        .message = format_text("This server does not answer to the name '{}': --allow-host adds it",
                               name_of(host))});
  }
  if (origin.empty()) return std::string();
  const std::size_t scheme_end = origin.find("://");
  const bool is_own = scheme_end != std::string_view::npos &&
                      boost::beast::iequals(origin.substr(scheme_end + 3), host);
  if (is_own) return std::string();
  if (std::ranges::contains(options_.origins, "*") || contains_name(options_.origins, origin)) {
    return std::string(origin);
  }
  return std::unexpected(ApiError{
      .status = 403,
      .message =
          format_text("Pages of {} may not use this server: --cors-origin allows them", origin)});
}

}  // namespace slipstream
