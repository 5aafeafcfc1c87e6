#include "server/routes/route_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace slipstream {

HttpReply openai_refusal(const ApiError& error) {
  return {.status = error.status, .body = to_json(error)};
}

namespace {

bool has(const Route& route, std::string_view path) {
  return route.path == path || (route.path.ends_with('/') && path.starts_with(route.path));
}

}  // namespace

void RouteTable::add(Route route) {
  const bool is_new = std::ranges::none_of(routes_, [&route](const Route& other) {
    return other.path == route.path && other.method == route.method;
  });
  SLIP_CHECK(is_new, "two routes for " + std::string(route.path));
  routes_.push_back(std::move(route));
}

const Route* RouteTable::find(std::string_view path) const {
  const auto found =
      std::ranges::find_if(routes_, [path](const Route& route) { return has(route, path); });
  return found == routes_.end() ? nullptr : &*found;
}

const Route* RouteTable::find(std::string_view path, boost::beast::http::verb method) const {
  const auto found = std::ranges::find_if(routes_, [path, method](const Route& route) {
    return route.method == method && has(route, path);
  });
  return found == routes_.end() ? find(path) : &*found;
}

std::string RouteTable::methods(std::string_view path) const {
  std::string all;
  for (const Route& route : routes_) {
    if (!has(route, path)) continue;
    all += (all.empty() ? "" : ", ") + std::string(boost::beast::http::to_string(route.method));
  }
  return all;
}

}  // namespace slipstream
