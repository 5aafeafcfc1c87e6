// RouteTable: the paths of the server and the functions that answer them.
//
// Threads: filled before the server listens, then immutable. Errors: none.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/verb.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/client.h"
#include "server/http/http_exchange.h"

namespace slipstream {

using RouteAnswer = boost::asio::awaitable<ApiResult<void>>;

[[nodiscard]] HttpReply openai_refusal(const ApiError& error);

struct Route {
  boost::beast::http::verb method;
  std::string_view path;  // if it ends with '/', it matches every path that begins with it
  std::function<RouteAnswer(HttpExchange&, const Client&)> answer;
  // Writes an error in the form of this route's API.
  HttpReply (*refusal)(const ApiError&) = openai_refusal;
  bool is_open = false;             // to clients without a key
  bool answers_to_the_end = false;  // false: refused while the server is shutting down
};

class RouteTable {
 public:
  // REQUIRES: no other route has this path and method.
  void add(Route route);
  // The first route with this path; null if there is none.
  [[nodiscard]] const Route* find(std::string_view path) const;
  // "GET, POST": the methods of the routes with this path.
  [[nodiscard]] std::string methods(std::string_view path) const;
  // The route with this path and method, or else find(path).
  [[nodiscard]] const Route* find(std::string_view path, boost::beast::http::verb method) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace slipstream
