// Logging: one event, one line of key=value pairs on standard error, through spdlog.
//
//   log::info("engine.step", {{"n_tokens", n}, {"took_ms", 3.5}});
//   log::warn("server.request", {{"status", 400}}, request_id);
//
//   ts=2026-11-15T10:00:00.123Z level=info event=engine.step request=- n_tokens=64 took_ms=3.5
//
// Values with a space, quote, '=' or control character are quoted and escaped, so that a line is
// always one line and splits back into what was logged. Nothing per token above debug.
//
// Threads: thread-safe. Errors: none; a line that cannot be written is lost.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace slipstream::log {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Field {
  Field(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}
  Field(std::string_view field_key, const char* text) : key(field_key), value(text) {}
  Field(std::string_view field_key, bool truth) : key(field_key), value(truth ? "true" : "false") {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view field_key, T number) : key(field_key), value(std::to_string(number)) {}
  Field(std::string_view field_key, double number);

  std::string_view key;
  std::string value;
};
using Fields = std::initializer_list<Field>;

// Lines below this level are not written. Info until it is called.
void set_level(Level level);

// "-" as request id: the line belongs to the process, not to a request.
void write(Level level, std::string_view event, std::span<const Field> fields,
           std::string_view request_id);
inline void debug(std::string_view event, Fields fields = {}, std::string_view request_id = "-") {
  write(Level::kDebug, event, fields, request_id);
}
inline void info(std::string_view event, Fields fields = {}, std::string_view request_id = "-") {
  write(Level::kInfo, event, fields, request_id);
}
inline void warn(std::string_view event, Fields fields = {}, std::string_view request_id = "-") {
  write(Level::kWarn, event, fields, request_id);
}
inline void error(std::string_view event, Fields fields = {}, std::string_view request_id = "-") {
  write(Level::kError, event, fields, request_id);
}

// What write() prints after timestamp and level. At most Limits::log_line_bytes_max bytes: fields
// that do not fit are left out whole and counted in a last field, n_fields_dropped.
std::string format_line(std::string_view event, std::span<const Field> fields,
                        std::string_view request_id);

}  // namespace slipstream::log
