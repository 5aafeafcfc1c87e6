#include "device/experts/expert_options.h"

#include <charconv>

#include "base/format.h"

namespace slipstream::turbo {
namespace {

// "4G", "512M", "65536": binary multiples.
Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit(end, text.data() + text.size());
  const std::string_view units = "KMGT";
  const std::size_t power = unit.empty() ? 0 : units.find(unit.front()) + 1;
  const bool is_size = error == std::errc{} && size > 0 && unit.size() <= 1 &&
                       (unit.empty() || units.contains(unit.front())) &&
                       size <= (UINT64_MAX >> (10 * power));
  if (!is_size) {
    return fail(Code::kInvalidArgument,
                format_text("\"{}\" is no size for the expert cache: 4G, 512M", text));
  }
  return size << (10 * power);
}

Result<ReadMethod> parse_way(std::string_view name) {
  if (name == "direct") return ReadMethod::kUringDirect;
  if (name == "buffered") return ReadMethod::kUringBuffered;
  if (name == "pread") return ReadMethod::kPread;
  return fail(Code::kInvalidArgument,
              format_text("no way to read named \"{}\": direct, buffered or pread", name));
}

Result<void> set(ExpertOptions& options, std::string_view key, std::string_view value) {
  const auto take = [](auto parsed, auto& into) -> Result<void> {
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    into = *parsed;
    return {};
  };
  if (key == "cache") return take(parse_size(value), options.cache_bytes);
  if (key == "policy") return take(parse_cache_policy(value), options.policy);
  if (key == "io") return take(parse_way(value), options.way);
  if (key == "lookahead" && (value == "on" || value == "off")) {
    options.looks_ahead = value == "on";
    return {};
  }
  if (key == "trace" || key == "pin") {
    (key == "trace" ? options.trace_path : options.pin_path) = value;
    return {};
  }
  return fail(
      Code::kInvalidArgument,
      format_text("\"{}={}\" is nothing that can be chosen for experts: policy=lru|lfu|auto, "
                  "io=direct|buffered|pread, lookahead=on|off, trace=FILE, pin=FILE",
                  key, value));
}

}  // namespace

Result<ExpertOptions> parse_expert_options(std::string_view text) {
  ExpertOptions options;
  for (bool is_first = true; is_first || !text.empty(); is_first = false) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t equals = word.find('=');
    const bool is_size = is_first && equals == std::string_view::npos;
    const Result<void> done =
        set(options, is_size ? "cache" : word.substr(0, equals),
            equals == std::string_view::npos ? (is_size ? word : "") : word.substr(equals + 1));
    if (!done) return std::unexpected(done.error());
  }
  if (options.cache_bytes == 0) {
    return fail(Code::kInvalidArgument, "the size of the expert cache is not named: 4G, 512M");
  }
  return options;
}

}  // namespace slipstream::turbo
