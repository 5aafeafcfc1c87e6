#include "cli/depth.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr int kDepthMax = 1 << 24;

}  // namespace

Result<int> parse_depth(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, text.data() + text.size());
  const bool is_thousands = rest == "k" || rest == "K";
  const double depth = is_thousands ? number * 1024 : number;
  // The comparison fails for NaN, too.
  const bool is_within = depth >= 0 && depth <= kDepthMax;
  if (error != std::errc{} || (!rest.empty() && !is_thousands) || !is_within) {
    return fail(Code::kInvalidArgument,
                format_text("{} is not a number of tokens such as 0, 512 or 8k", text));
  }
  return static_cast<int>(depth);
}

void take_depths(CLI::Option& option, int min) {
  option.transform(CLI::Validator(
      [min](std::string& text) -> std::string {
        const Result<int> depth = parse_depth(text);
        if (!depth) return depth.error().message;
        if (*depth < min) return format_text("{} is less than {} tokens", text, min);
        text = std::to_string(*depth);
        return {};
      },
      "TOKENS"));
}

}  // namespace slipstream
