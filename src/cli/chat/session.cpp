#include "cli/chat/session.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::chat {
namespace {

struct Setting {
  std::string_view name;
  double min;
  double max;
  bool is_integer = false;
};
constexpr std::array kSettings = {
    Setting{"temperature", 0, 100},        Setting{"top_p", 0, 1},
    Setting{"top_k", 0, 1e6, true},        Setting{"min_p", 0, 1},
    Setting{"max_tokens", 1, 1e9, true},   Setting{"seed", 0, 4294967295.0, true},
    Setting{"presence_penalty", -2, 2},    Setting{"frequency_penalty", -2, 2},
    Setting{"repetition_penalty", 0, 100},
};
constexpr std::string_view kThinking = "thinking";  // for templates with enable_thinking

std::unexpected<Error> unknown_setting(std::string_view name) {
  std::string names;
  for (const Setting& setting : kSettings) names += format_text("{}, ", setting.name);
  return fail(Code::kInvalidArgument,
              format_text("there is no setting '{}'; there are {}{}", name, names, kThinking));
}

bool is_message(const Json& message) {
  if (!message.is_object() || !message.contains("role") || !message.contains("content"))
    return false;
  return (message["role"] == "user" || message["role"] == "assistant") &&
         message["content"].is_string();
}

}  // namespace

bool Session::drop_answer() {
  if (!messages_.empty() && messages_.back()["role"] == "assistant") {
    messages_.erase(messages_.size() - 1);
  }
  return !messages_.empty();
}

Result<void> Session::set(std::string_view name, std::string_view value) {
  if (name == kThinking) {
    if (value != "on" && value != "off" && !value.empty()) {
      return fail(Code::kInvalidArgument, "thinking is on or off");
    }
    settings_.erase("chat_template_kwargs");
    if (!value.empty()) settings_["chat_template_kwargs"] = {{"enable_thinking", value == "on"}};
    return {};
  }
  const auto* setting = std::ranges::find(kSettings, name, &Setting::name);
  if (setting == kSettings.end()) return unknown_setting(name);
  if (value.empty()) {
    settings_.erase(std::string(name));
    return {};
  }
  double number = 0;
  const char* begin = value.data();
  const char* end = begin + value.size();
  const auto read = std::from_chars(begin, end, number);
  const bool is_whole = number == std::trunc(number);
  if (read.ec != std::errc() || read.ptr != end || !(number >= setting->min) ||
      !(number <= setting->max) || (setting->is_integer && !is_whole)) {
    return fail(Code::kInvalidArgument,
                format_text("{} is {} from {} to {}", name,
                            setting->is_integer ? "a whole number" : "a number", setting->min,
                            setting->max));
  }
  settings_[std::string(name)] =
      setting->is_integer ? Json(static_cast<std::int64_t>(number)) : Json(number);
  return {};
}

Json Session::request() const {
  Json request = settings_;
  request["model"] = model_;
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& message : messages_) messages.push_back(message);
  request["messages"] = std::move(messages);
  return request;
}

Result<void> Session::save(const std::string& path) const {
  const Json whole = {
      {"model", model_}, {"system", system_}, {"settings", settings_}, {"messages", messages_}};
  const std::string text = whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const Result<UniqueFd> file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!file) return std::unexpected(file.error());
  return write_exactly(file->get(), std::as_bytes(std::span(text)));
}

Result<void> Session::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, format_text("cannot open {}", path));
  const std::string text{std::istreambuf_iterator(file), std::istreambuf_iterator<char>()};
  const Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto part = [&](const char* key, const Json& other) {
    return whole.is_object() && whole.contains(key) ? whole[key] : other;
  };
  const Json messages = part("messages", Json());
  const Json settings = part("settings", Json::object());
  const Json system = part("system", "");
  if (!messages.is_array() || !std::ranges::all_of(messages, is_message) || !settings.is_object() ||
      !system.is_string()) {
    return fail(Code::kInvalidArgument,
                format_text("{} is not a saved chat: /save writes files that can be loaded", path));
  }
  messages_ = messages;
  settings_ = settings;
  system_ = system.get<std::string>();
  return {};
}

}  // namespace slipstream::chat
