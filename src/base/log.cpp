#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <format>
#include <iterator>
#include <memory>

#include "base/check.h"
#include "base/format.h"
#include "base/limits.h"

namespace slipstream::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  SLIP_CHECK(false, "a Level outside the enumeration");
}

spdlog::logger& logger() {
  // Never destroyed: threads may log while the process exits.
  static spdlog::logger* const instance = [] {
    auto* created =
        new spdlog::logger("slipstream", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("ts=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
    created->flush_on(spdlog::level::debug);
    return created;
  }();
  return *instance;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           return c == ' ' || c == '"' || c == '=' || c == '\\' || is_control(c);
         });
}

void append_escaped(std::string& line, std::string_view value) {
  if (!needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (is_control(c)) {
      std::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  line += '"';
}

std::string pair(std::string_view key, std::string_view value) {
  std::string text = format_text("{}=", key);
  append_escaped(text, value);
  return text;
}

}  // namespace

Field::Field(std::string_view field_key, double number)
    : key(field_key), value(format_text("{}", number)) {}

void set_level(Level level) { logger().set_level(spdlog_level(level)); }

std::string format_line(std::string_view event, std::span<const Field> fields,
                        std::string_view request_id) {
  // Room for the field that counts the dropped ones.
  constexpr std::size_t kReserved = sizeof(" n_fields_dropped=") + 20;
  std::string line = format_text("{} {}", pair("event", event), pair("request", request_id));
  std::size_t n_dropped = 0;
  for (const Field& field : fields) {
    const std::string text = pair(field.key, field.value);
    if (line.size() + 1 + text.size() + kReserved > kLimits.log_line_bytes_max) {
      ++n_dropped;
    } else {
      line += ' ';
      line += text;
    }
  }
  if (n_dropped > 0) line += format_text(" n_fields_dropped={}", n_dropped);
  return line;
}

void write(Level level, std::string_view event, std::span<const Field> fields,
           std::string_view request_id) {
  const spdlog::level::level_enum at = spdlog_level(level);
  if (!logger().should_log(at)) return;
  // As an argument, never as a format string: a value may contain braces.
  logger().log(at, "{}", format_line(event, fields, request_id));
}

}  // namespace slipstream::log
