// HttpConnection: GET over HTTP or HTTPS with libcurl, one request after the other, with
// connections kept in between. Redirects are followed. The token is sent only to the
// host it is meant for, and https never changes to http. The environment's proxies are
// used (https_proxy, ...).
//
// Threads: thread-compatible; one per thread.
// Errors:  none; the answer says what happened (http_verdict.h judges it).
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
  long status = 0;  // of the last host; 0 if there was no answer
  std::string url;  // where the answer came from
  std::string content_range;
  std::optional<std::uint64_t> content_bytes;
  std::string error_code;  // the hub's reason for a refusal: "GatedRepo"
  std::optional<std::chrono::seconds> retry_after;
  // How the transfer failed; empty for every answer that arrived completely.
  std::string failure;
  bool is_unreachable = false;       // no connection was established
  bool is_temporary = false;         // another try may succeed
  bool is_stopped_by_taker = false;  // the taker did not want more
};

class HttpConnection {
 public:
  HttpConnection();
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Gets only the bodies of 200 and 206, part by part. The transfer ends if it returns false. The
  // answer already has its status and headers.
  using Taker = std::function<bool(const HttpAnswer& answer, std::span<const std::byte> bytes)>;
  // Once is_stopped is true, the transfer ends within a second even if nothing arrives.
  [[nodiscard]] HttpAnswer get(const HttpRequest& request, const Taker& taker,
                               const std::atomic<bool>* is_stopped = nullptr);

 private:
  struct Transfer;
  void* handle_;  // CURL
};

// "https://host/a b" is not an address: each part of the path is escaped.
[[nodiscard]] std::string escape_path(std::string_view path);
// Escapes a value after '?'. Here '/' is escaped too.
[[nodiscard]] std::string escape_query(std::string_view value);
// "https://host:1" for an address, for messages: the rest of it may contain a signature.
[[nodiscard]] std::string host_of(std::string_view url);

}  // namespace slipstream::hub
