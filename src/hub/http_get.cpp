#include "hub/http_get.h"

#include <curl/curl.h>

#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <ranges>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::hub {
namespace {

constexpr long kRedirectsMax = 8;
constexpr long kConnectSecondsMax = 20;
// A connection slower than this for so long is given up, and another one is tried.
constexpr long kSlowestBytesPerSecond = 100;
constexpr long kSlowSecondsMax = 30;

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    SLIP_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl does not start");
  });
}

struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::string header_of(CURL* curl, const char* name) {
  curl_header* header = nullptr;
  constexpr int kLastRequest = -1;
  if (curl_easy_header(curl, name, 0, CURLH_HEADER, kLastRequest, &header) != CURLHE_OK) return "";
  return header->value;
}

void read_head(CURL* curl, HttpAnswer& answer) {
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  const char* url = nullptr;
  if (curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url != nullptr) {
    answer.url = url;
  }
  curl_off_t n_bytes = -1;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &n_bytes);
  if (n_bytes >= 0) answer.content_bytes = static_cast<std::uint64_t>(n_bytes);
  answer.content_range = header_of(curl, "Content-Range");
  answer.error_code = header_of(curl, "X-Error-Code");
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) answer.retry_after = std::chrono::seconds(seconds);
}

bool is_temporary(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_CONNECT;
}

}  // namespace

struct HttpConnection::Transfer {
  CURL* curl;
  const Taker& taker;
  const std::atomic<bool>* is_stopped;
  HttpAnswer answer;
  std::exception_ptr thrown;  // in take()

  static int watch(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
    const auto& transfer = *static_cast<const Transfer*>(self);
    return transfer.is_stopped != nullptr && transfer.is_stopped->load() ? 1 : 0;
  }
  // A C callback: no exception may pass through it. One ends the transfer, and get() reports it.
  static std::size_t take(char* data, std::size_t size, std::size_t n, void* self) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    const std::size_t n_bytes = size * n;
    try {
      return transfer.wants(std::as_bytes(std::span(data, n_bytes))) ? n_bytes
                                                                     : CURL_WRITEFUNC_ERROR;
    } catch (const std::exception&) {
      transfer.thrown = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }

  bool wants(std::span<const std::byte> bytes) {
    read_head(curl, answer);
    if (answer.status != 200 && answer.status != 206) return true;
    answer.is_stopped_by_taker = !taker(answer, bytes);
    return !answer.is_stopped_by_taker;
  }
};

namespace {

std::string reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return "not enough memory for what arrived";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

HttpConnection::HttpConnection() {
  start_curl();
  handle_ = curl_easy_init();
  SLIP_CHECK(handle_ != nullptr, "libcurl gives no handle");
}

HttpConnection::~HttpConnection() { curl_easy_cleanup(handle_); }

HttpAnswer HttpConnection::get(const HttpRequest& request, const Taker& taker,
                               const std::atomic<bool>* is_stopped) {
  CURL* curl = handle_;
  curl_easy_reset(curl);  // connections are kept
  Transfer transfer{
      .curl = curl, .taker = taker, .is_stopped = is_stopped, .answer = {}, .thrown = {}};
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "slipstream");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::watch);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSecondsMax);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSlowSecondsMax);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirectsMax);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR,
                   request.url.starts_with("https://") ? "https" : "http,https");
  // The token is libcurl's own credential, which is sent to no other host, port or protocol.
  if (!request.token.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  if (request.range) {
    curl_easy_setopt(curl, CURLOPT_RANGE,
                     format_text("{}-{}", request.range->begin, request.range->end - 1).c_str());
  }

  const CURLcode code = curl_easy_perform(curl);
  HttpAnswer& answer = transfer.answer;
  read_head(curl, answer);
  if (transfer.thrown) {
    answer.failure = reason_of(transfer.thrown);
  } else if (code != CURLE_OK && !answer.is_stopped_by_taker) {
    answer.failure = reason[0] != '\0' ? reason.data() : curl_easy_strerror(code);
    answer.is_temporary = is_temporary(code);
    answer.is_unreachable = is_unreachable(code);
  }
  return answer;
}

std::string escape_path(std::string_view path) {
  std::string escaped;
  for (const auto part : std::views::split(path, '/')) {
    if (part.begin() != path.begin()) escaped += '/';
    escaped += escape_query(std::string_view(part));
  }
  return escaped;
}

std::string escape_query(std::string_view value) {
  if (value.empty()) return "";  // for length 0, libcurl would call strlen()
  // libcurl has ignored the handle since 7.82.
  const std::unique_ptr<char, FreeText> escaped(
      curl_easy_escape(nullptr, value.data(), static_cast<int>(value.size())));
  if (!escaped) throw std::bad_alloc();
  return escaped.get();
}

std::string host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, url.find_first_of("/?#", scheme + 3)));
}

}  // namespace slipstream::hub
