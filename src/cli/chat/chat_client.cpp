#include "cli/chat/chat_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/check.h"
#include "base/format.h"
#include "cli/chat/answer_reader.h"

namespace slipstream::chat {
namespace {

constexpr int kPollMs = 50;
constexpr long kConnectSecondsMax = 20;
constexpr long kQuestionSecondsMax = 60;  // for requests that are answered immediately
constexpr std::size_t kBodyBytesMax = std::size_t{16} << 20;

std::string api_url(std::string url) {
  if (!url.contains("://")) url = "http://" + url;
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with("/v1") ? url : url + "/v1";
}

// The host of an address, as libcurl itself reads it; empty if it is no address.
std::string host_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts(curl_url(), curl_url_cleanup);
  char* host = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK) {
    return "";
  }
  const std::unique_ptr<char, decltype(&curl_free)> owner(host, curl_free);
  return host;
}

// These are C callbacks: no exception may pass through them.
std::size_t append_text(char* bytes, std::size_t, std::size_t n, void* user) noexcept {
  try {
    auto& body = *static_cast<std::string*>(user);
    body.append(bytes, n);
    return body.size() <= kBodyBytesMax ? n : 0;
  } catch (...) {
    return 0;
  }
}

std::size_t feed_reader(char* bytes, std::size_t, std::size_t n, void* user) noexcept {
  try {
    static_cast<AnswerReader*>(user)->take({bytes, n});
    return n;
  } catch (...) {
    return 0;
  }
}

constexpr std::string_view kKvBytes = "slipstream:kv_cache_bytes{";

// The value of a label, without its quotes; empty if the label is missing.
std::string_view label_of(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(format_text("{}=\"", name));
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + name.size() + 2);
  return rest.substr(0, rest.find('"'));
}

}  // namespace

std::optional<double> tokens_per_second(const Answer& answer) {
  // If an answer came in one piece, only the total time says something about its speed.
  const int n_tokens = answer.is_streamed ? answer.n_generated - 1 : answer.n_generated;
  const double seconds = answer.seconds - (answer.is_streamed ? answer.first_token_s : 0);
  if (n_tokens <= 0 || seconds <= 0) return std::nullopt;
  return n_tokens / seconds;
}

bool is_loopback(const std::string& url) {
  const std::string host = host_of(url);
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  return curl_strequal(host.c_str(), "localhost") != 0 || host == "[::1]" ||
         (is_number && host.starts_with("127."));
}

std::optional<KvUse> find_kv_use(std::string_view metrics, const ServerModel& model, int n_tokens) {
  if (model.n_context <= 0 || n_tokens <= 0) return std::nullopt;
  for (std::size_t begin = 0; begin < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', begin), metrics.size());
    const std::string_view line = metrics.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(kKvBytes) || label_of(line, "model_name") != model.name) continue;
    double n_bytes = 0;
    const char* number = line.data() + line.rfind(' ') + 1;
    if (std::from_chars(number, line.data() + line.size(), n_bytes).ec != std::errc()) continue;
    if (n_bytes <= 0) continue;  // not known
    return KvUse{.scheme = std::string(label_of(line, "kv_scheme")),
                 .used_bytes = n_bytes * n_tokens / model.n_context,
                 .all_bytes = n_bytes};
  }
  return std::nullopt;
}

struct ChatClient::Handles {
  CURL* easy = curl_easy_init();
  CURLM* multi = curl_multi_init();
  curl_slist* headers = nullptr;

  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    curl_slist_free_all(headers);
    curl_multi_cleanup(multi);
    curl_easy_cleanup(easy);
  }
  void add_header(const std::string& line) { headers = curl_slist_append(headers, line.c_str()); }

  // Prepares the handle for the next request. Connections are kept.
  CURL* begin(const std::string& url, bool is_local) const {
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSecondsMax);
    if (is_local) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    return easy;
  }
};

ChatClient::ChatClient(const std::string& url, const std::string& api_key)
    : url_(api_url(url)), handles_(std::make_unique<Handles>()) {
  SLIP_CHECK(handles_->easy != nullptr && handles_->multi != nullptr, "libcurl does not start");
  handles_->add_header("Content-Type: application/json");
  handles_->add_header("Expect:");  // avoids a round trip before a long body
  if (!api_key.empty()) handles_->add_header("Authorization: Bearer " + api_key);
}

ChatClient::~ChatClient() = default;

Result<std::string> ChatClient::get(const std::string& url) {
  CURL* curl = handles_->begin(url, is_loopback(url));
  std::string body;
  curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, kQuestionSecondsMax);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append_text);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  if (const CURLcode code = curl_easy_perform(curl); code != CURLE_OK) {
    return fail(Code::kOverloaded, format_text("{} does not answer ({}): is it running?", url,
                                               curl_easy_strerror(code)));
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return body;
  if (status == 401) {
    return fail(Code::kPermission,
                format_text("{} needs an API key: give it with --api-key or OPENAI_API_KEY", url));
  }
  const std::string message = error_message(Json::parse(body, nullptr, false));
  return fail(Code::kInvalidArgument, format_text("{} answered {} {}", url, status, message));
}

Result<ServerModel> ChatClient::find_model(const std::string& name) {
  const Result<std::string> body = get(url_ + "/models");
  if (!body) return std::unexpected(body.error());
  const Json answer = Json::parse(*body, nullptr, /*allow_exceptions=*/false);
  try {
    std::string names;
    for (const Json& model : answer.at("data")) {
      const auto id = model.at("id").get<std::string>();
      if (name.empty() || id == name) {
        return ServerModel{.name = id,
                           .is_ours = model.value("owned_by", "") == "slipstream",
                           .n_context = model.value("max_model_len", 0)};
      }
      names += " " + id;
    }
    return fail(Code::kNotFound,
                names.empty() ? format_text("{} serves no model", url_)
                              : format_text("{} has no model '{}'; it has{}", url_, name, names));
  } catch (const Json::exception&) {
    return fail(Code::kNotFound,
                format_text("{}/models lists no models: is this a server for OpenAI's API?", url_));
  }
}

std::optional<KvUse> ChatClient::kv_use(const ServerModel& model, int n_tokens) {
  const Result<std::string> metrics =
      get(url_.substr(0, url_.size() - std::string_view("/v1").size()) + "/metrics");
  return metrics ? find_kv_use(*metrics, model, n_tokens) : std::nullopt;
}

Result<Answer> ChatClient::ask(Json request, const std::function<void(const Piece&)>& on_piece,
                               const std::function<bool()>& is_stopped) {
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  AnswerReader reader(on_piece);
  CURL* curl = handles_->begin(url_ + "/chat/completions", is_loopback(url_));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, feed_reader);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reader);
  curl_multi_add_handle(handles_->multi, curl);
  int n_running = 1;
  CURLMcode driven = CURLM_OK;
  while (driven == CURLM_OK) {
    driven = curl_multi_perform(handles_->multi, &n_running);
    if (driven != CURLM_OK || n_running == 0 || is_stopped()) break;
    driven = curl_multi_poll(handles_->multi, nullptr, 0, kPollMs, nullptr);
  }
  int n_messages = 0;
  const CURLMsg* message = curl_multi_info_read(handles_->multi, &n_messages);
  const CURLcode code = message == nullptr ? CURLE_OK : message->data.result;
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(handles_->multi, curl);  // closes the connection of an unfinished answer
  Answer answer = reader.finish();
  if (driven != CURLM_OK) {
    return fail(Code::kOverloaded,
                format_text("the connection to {} failed: {}", url_, curl_multi_strerror(driven)));
  }
  answer.is_stopped = n_running > 0;
  if (answer.is_stopped) return answer;
  if (code != CURLE_OK) {
    return fail(Code::kOverloaded,
                format_text("the connection to {} failed: {}", url_, curl_easy_strerror(code)));
  }
  if (const std::string error = reader.error(); !error.empty() || status != 200) {
    return fail(Code::kInvalidArgument,
                error.empty() ? format_text("{} answered {}", url_, status) : error);
  }
  return answer;
}

}  // namespace slipstream::chat
