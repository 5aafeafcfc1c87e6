#include "server/api/responses_error.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Replaces "tools[1].function", whose index counts functions only, by the path of that function in
// the body.
void replace_tool_paths(std::string& text, const std::vector<std::string>& paths) {
  constexpr std::string_view kBegin = "tools[";
  constexpr std::string_view kEnd = "].function";
  for (std::size_t at = text.find(kBegin); at != std::string::npos;
       at = text.find(kBegin, at + kBegin.size())) {
    const char* digits = text.data() + at + kBegin.size();
    std::size_t idx = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), idx);
    const auto behind = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || idx >= paths.size() || text.compare(behind, kEnd.size(), kEnd) != 0)
      continue;
    text.replace(at, behind + kEnd.size() - at, paths[idx]);
  }
}

}  // namespace

ApiError in_words_of_responses(ApiError error, const std::vector<std::string>& tool_paths) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {{
      {"response_format.json_schema", "text.format"},
      {"response_format", "text.format"},
      {"max_tokens", "max_output_tokens"},
      {"reasoning_effort", "reasoning.effort"},
      {"messages", "input"},
  }};
  for (std::string* text : {&error.param, &error.message}) {
    *text = quotable(*text);  // bounds the work: it may quote megabytes
    replace_tool_paths(*text, tool_paths);
    const bool is_quoted = text == &error.message;
    for (const auto& [from, to] : kNames) {
      if (is_quoted) {
        replace_all(*text, format_text("'{}", from), format_text("'{}", to));
      } else if (text->starts_with(from)) {
        text->replace(0, from.size(), to);
        break;
      }
    }
  }
  return error;
}

}  // namespace slipstream
