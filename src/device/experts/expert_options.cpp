#include "device/experts/expert_options.h"

#include "base/format.h"
#include "device/option_values.h"

namespace slipstream::turbo {
namespace {

Result<void> set(ExpertOptions& options, std::string_view key, std::string_view value) {
  const auto take = [](auto parsed, auto& into) -> Result<void> {
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    into = *parsed;
    return {};
  };
  if (key == "cache") return take(parse_size(value, "the expert cache"), options.cache_bytes);
  if (key == "policy") return take(parse_cache_policy(value), options.policy);
  if (key == "io") return take(parse_read_method(value), options.way);
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
