// HttpConnection: GET over HTTP or HTTPS with libcurl, one request after the other, connections
// kept in between. Redirects are followed; the token goes to the host it is meant for and to no
// other, and https is not left for http. The environment's proxies are used (https_proxy, ...).
//
// Threads: thread-compatible; one for each thread.
// Errors:  none; an answer says what came of it (http_verdict.h judges it).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slipstream::hub {

struct HttpRequest {
  std::string url;
  std::string token;  // empty: none
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;  // past the last byte
  };
  std::optional<Range> range;
};

struct HttpAnswer {
  long status = 0;  // of the last host; 0: none came
  std::string url;  // where the answer came from
  std::string content_range;
  std::optional<std::uint64_t> content_bytes;
  std::string error_code;  // the hub's word for why not: "GatedRepo"
  std::optional<std::chrono::seconds> retry_after;
  // How the transfer failed, if it did; empty for every answer that came whole.
  std::string failure;
  bool is_unreachable = false;       // no connection came about
  bool is_temporary = false;         // failed so that another try may succeed
  bool is_stopped_by_taker = false;  // the taker did not want more
};

class HttpConnection {
 public:
  HttpConnection();
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Given the bodies of 200 and 206 only, part by part; false ends the transfer. The answer has its
  // status and headers by then.
  using Taker = std::function<bool(const HttpAnswer& answer, std::span<const std::byte> bytes)>;
  // Once is_stopped is true, the transfer ends within a second even if nothing comes.
  [[nodiscard]] HttpAnswer get(const HttpRequest& request, const Taker& taker,
                               const std::atomic<bool>* is_stopped = nullptr);

 private:
  struct Transfer;
  void* handle_;  // CURL
};

// "https://host/a b" is not an address: each part of the path is escaped.
[[nodiscard]] std::string escape_path(std::string_view path);
// A value behind '?': here a '/' is escaped, too.
[[nodiscard]] std::string escape_query(std::string_view value);
// "https://host:1" of an address, for messages: what follows may hold a signature.
[[nodiscard]] std::string host_of(std::string_view url);

}  // namespace slipstream::hub
