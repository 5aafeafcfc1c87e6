#include "bench/load/stream_client.h"

#include <curl/curl.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "bench/load/event_lines.h"

namespace slipstream::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Listening {
  Clock::time_point asked = Clock::now();
  RequestTrace trace;
  EventLines lines;
  std::string body;  // the beginning, in case it is an error

  void take(std::string_view data) {
    const json event = json::parse(data, nullptr, false);
    if (!event.is_object()) return;  // [DONE]
    if (event.contains("error")) trace.error = event["error"].dump();
    if (event.contains("usage") && event["usage"].is_object()) {
      trace.n_prompt_tokens = event["usage"].value("prompt_tokens", 0);
      trace.n_tokens = event["usage"].value("completion_tokens", 0);
    }
    if (!event.contains("choices") || event["choices"].empty()) return;
    if (!event["choices"][0].value("text", "").empty())
      trace.events_s.push_back(seconds_since(asked));
  }
};

std::size_t on_bytes(char* bytes, std::size_t, std::size_t n, void* user) noexcept {
  try {
    auto& listening = *static_cast<Listening*>(user);
    constexpr std::size_t kErrorBytesMax = 4096;
    if (listening.body.size() < kErrorBytesMax) listening.body.append(bytes, n);
    listening.lines.take({bytes, n}, [&](std::string_view data) { listening.take(data); });
    return n;
  } catch (...) {
    return 0;  // libcurl aborts the transfer
  }
}

std::size_t on_text(char* bytes, std::size_t, std::size_t n, void* user) noexcept {
  try {
    static_cast<std::string*>(user)->append(bytes, n);
    return n;
  } catch (...) {
    return 0;
  }
}

}  // namespace

struct StreamClient::Handle {
  CURL* curl = curl_easy_init();
  curl_slist* headers = nullptr;
  ~Handle() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
  }
};

StreamClient::StreamClient(std::string url, const std::string& api_key, double timeout_seconds)
    : handle_(std::make_unique<Handle>()), url_(std::move(url)) {
  SLIP_CHECK(handle_->curl != nullptr, "libcurl does not start");
  const auto add = [&](const std::string& line) {
    handle_->headers = curl_slist_append(handle_->headers, line.c_str());
  };
  add("Content-Type: application/json");
  add("Expect:");  // avoids a round trip before a long body
  if (!api_key.empty()) add("Authorization: Bearer " + api_key);
  curl_easy_setopt(handle_->curl, CURLOPT_HTTPHEADER, handle_->headers);
  curl_easy_setopt(handle_->curl, CURLOPT_NOSIGNAL, 1L);  // there are several threads
  curl_easy_setopt(handle_->curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_seconds * 1e3));
}

StreamClient::~StreamClient() = default;

RequestTrace StreamClient::complete(const StreamRequest& request) {
  // llama-server and slipstream know ignore_eos: all answers have the same length.
  const std::string body = json{{"model", request.model},
                                {"prompt", request.prompt},
                                {"max_tokens", request.n_tokens},
                                {"temperature", 0},
                                {"ignore_eos", true},
                                {"stream", true},
                                {"stream_options", {{"include_usage", true}}}}
                               .dump(-1, ' ', false, json::error_handler_t::replace);
  CURL* curl = handle_->curl;
  const std::string url = url_ + "/completions";
  Listening listening;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &listening);
  listening.asked = Clock::now();
  const CURLcode code = curl_easy_perform(curl);
  RequestTrace trace = std::move(listening.trace);
  trace.ended_s = seconds_since(listening.asked);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK) {
    trace.error = curl_easy_strerror(code);
  } else if (status != 200) {
    trace.error = format_text("HTTP {}: {}", status, listening.body);
  } else if (trace.events_s.empty() && trace.error.empty()) {
    trace.error = "an answer without text";
  }
  // If the server does not count tokens, each piece counts as one.
  if (trace.n_tokens == 0) trace.n_tokens = static_cast<int>(trace.events_s.size());
  return trace;
}

std::string StreamClient::first_model(std::string& error) {
  CURL* curl = handle_->curl;
  const std::string url = url_ + "/models";
  std::string body;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_text);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  if (const CURLcode code = curl_easy_perform(curl); code != CURLE_OK) {
    error = format_text("{} does not answer: {}", url, curl_easy_strerror(code));
    return "";
  }
  const json models = json::parse(body, nullptr, false);
  try {
    return models.at("data").at(0).at("id").get<std::string>();
  } catch (const json::exception&) {
    error = format_text("{} lists no model: {}", url, body.substr(0, 300));
    return "";
  }
}

}  // namespace slipstream::bench
