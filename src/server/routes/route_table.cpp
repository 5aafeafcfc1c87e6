#include "server/routes/route_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace slipstream {

HttpReply openai_refusal(const ApiError& error) {
  return {.status = error.status, .body = to_json(error)};
}

void RouteTable::add(Route route) {
  SLIP_CHECK(!std::ranges::contains(routes_, route.path, &Route::path),
             "two routes for " + std::string(route.path));
  routes_.push_back(std::move(route));
}

const Route* RouteTable::find(std::string_view path) const {
  const auto found = std::ranges::find_if(routes_, [path](const Route& route) {
    return route.path == path || (route.path.ends_with('/') && path.starts_with(route.path));
  });
  return found == routes_.end() ? nullptr : &*found;
}

}  // namespace slipstream
