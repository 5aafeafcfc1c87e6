// Whatever a model writes: the parse does not depend on how the text is cut, arguments are JSON,
// and text without markup comes out as it went in. Input: a byte for the family of tool calls, a
// byte for the one of reasoning (its highest bit: the prompt has opened it), the text.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "harness.h"
#include "server/ascii.h"
#include "server/output/chat_answer.h"
#include "server/output/output_parser.h"

namespace {

using slipstream::ChatAnswer;

const slipstream::ToolSet& tools() {
  static const slipstream::ToolSet kTools(nlohmann::ordered_json::parse(R"([{"type": "function",
    "function": {"name": "f", "parameters": {"properties":
    {"s": {"type": "string"}, "n": {"type": "number"}}}}}])"));
  return kTools;
}

ChatAnswer parse(std::uint8_t calls, std::uint8_t reasoning, std::string_view text, std::size_t n) {
  slipstream::OutputParser parser(
      {.format = {static_cast<slipstream::ToolCallFamily>(calls % slipstream::kToolCallFamilies),
                  static_cast<slipstream::ReasoningFamily>((reasoning & 0x7F) %
                                                           slipstream::kReasoningFamilies)},
       .tools = tools(),
       .starts_in_reasoning = (reasoning & 0x80) != 0});
  ChatAnswer answer;
  for (std::size_t i = 0; i < text.size(); i += n) answer.add(parser.push(text.substr(i, n)));
  answer.add(parser.finish());
  return answer;
}

std::string without_space(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (!slipstream::is_space(byte)) result += byte;
  }
  return result;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 3) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, n_bytes - 2);
  const ChatAnswer whole = parse(data[0], data[1], text, text.size());
  for (const std::size_t n : {1UZ, 2UZ, 7UZ}) {
    SLIP_CHECK(parse(data[0], data[1], text, n) == whole, "cutting makes a difference");
  }
  SLIP_CHECK(!whole.call_is_open, "a call has no end");
  // JSON is UTF-8; the engine's texts are, a fuzzer's need not be.
  const bool is_utf8 = nlohmann::json::accept(nlohmann::json(text).dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::ignore)) &&
                       nlohmann::json(text)
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                               .find("\xEF\xBF\xBD") == std::string::npos;
  for (const ChatAnswer::Call& call : whole.calls) {
    SLIP_CHECK(!call.name.empty(), "a call has no name");
    if (!is_utf8) continue;
    const auto arguments = nlohmann::json::parse(call.arguments, nullptr, false);
    SLIP_CHECK(arguments.is_object(), "arguments are no JSON object");
  }
  if (text.find_first_of("<>[]{}()`|:=") == text.npos) {
    SLIP_CHECK(without_space(whole.reasoning + whole.content) == without_space(text),
               "text was lost or changed");
  }
  return 0;
}
