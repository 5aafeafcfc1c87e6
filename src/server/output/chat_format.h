// ChatFormat: how a family of models writes tool calls and reasoning, as data.
//
// A family is one row of a table (chat_format.cpp): which texts open a call, and in which of four
// syntaxes the call is then written. Parsers are written per syntax, never per family. Which family
// a model belongs to is read from its chat template, which teaches the model the same markup.
//
// Threads: immutable. Errors: none; a template that says nothing known is kGeneric.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "server/output/json_reader.h"

namespace slipstream {

enum class ToolCallFamily : std::uint8_t {
  kGeneric,     // JSON, bare or in <tool_call>: what we ask of models whose template has no tools
  kHermes,      // <tool_call>{"name": ..., "arguments": ...}</tool_call>: Hermes, Qwen 2.5 and 3
  kQwenXml,     // <tool_call><function=f><parameter=p>...: Qwen3-Coder, Qwen 3.5, Nemotron 3
  kSeedXml,     // the same within <seed:tool_call>
  kGlm,         // <tool_call>f<arg_key>p</arg_key><arg_value>...</arg_value></tool_call>
  kMiniMaxXml,  // <minimax:tool_call><invoke name="f"><parameter name="p">...
  kMiniCpmXml,  // <function name="f"><param name="p">...
  kDsml,        // DeepSeek V3.2 and V4: the same with ｜DSML｜ in every tag, and typed
  kDeepSeek,    // <｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}: R1, V3, V3.1
  kKimi,        // <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}
  kSolar,       // <|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{...}
  kMistral,     // [TOOL_CALLS][{...}] and [TOOL_CALLS]f[ARGS]{...}
  kLlama3,      // {"name": ..., "parameters": ...} as the whole answer, or after <|python_tag|>
  kHarmony,     // gpt-oss: channels, and calls as messages to=functions.f
  kGemma,       // ```tool_code f(p="...")```, or JSON: Gemma up to 3
  kGemma4,      // <|tool_call>call:f{p:<|"|>...<|"|>}<tool_call|>
  kToolCallToken,  // <|tool_call|>[{...}] and functools[{...}]: Phi-4, Granite 3, Firefunction
  kToolCallsTag,   // <tool_calls>[{...}]</tool_calls>: Apriel, MiniMax-M1
  kNemotron2,      // <TOOLCALL>[{...}]</TOOLCALL>
  kCohere,         // <|START_ACTION|>[{"tool_name": ..., "parameters": ...}]<|END_ACTION|>
  kApertus,        // <|tools_prefix|>[{"f": {...}}]<|tools_suffix|>
  kLfm,            // <|tool_call_start|>[f(p="...")]<|tool_call_end|>
  kFunctionary31,  // <function=f>{...}</function>
};
inline constexpr int kToolCallFamilies = 23;

enum class ReasoningFamily : std::uint8_t {
  kNone,      // none that the template tells of: an answer may still begin with <think>
  kThink,     // <think>...</think>
  kThinking,  // <thinking>
  kSeed,      // <seed:think>
  kMiniMax,   // <mm:think>
  kMistral,   // [THINK]...[/THINK]
  kCohere,    // <|START_THINKING|>
  kApertus,   // <|inner_prefix|>
  kGemma4,    // <|channel>thought ... <channel|>
  kApriel,    // "Here are my reasoning steps:" ... [BEGIN FINAL RESPONSE]
  kSolar,     // <|think|>...<|end|>
  kHarmony,   // the channel "analysis"
};
inline constexpr int kReasoningFamilies = 12;

struct ReasoningTags {
  std::string_view open;
  std::string_view close;
};

// <call_open>name<name_close> <key_open>key<key_close> <value_open>value<value_close> <call_close>
struct XmlSyntax {
  std::string_view call_open;
  std::string_view name_close = ">";
  std::string_view key_open;
  std::string_view key_close = ">";
  std::string_view value_open = "";
  std::string_view value_close;
  std::string_view call_close;
  std::string_view section_close = "";
  bool name_ends_at_markup = false;  // a name may end where the next tag begins
  bool value_on_own_lines = false;   // a line feed after the tag and before the next is markup
  bool may_be_cdata = false;         // <![CDATA[...]]> around a value is markup
};

// name and then a JSON object, with fixed texts around both.
struct NamedJsonSyntax {
  std::string_view name_after = "";   // what stands before the name, if it is there
  std::string_view name_prefix = "";  // a namespace in front of it that clients do not know
  std::array<std::string_view, 2> after_name = {};
  std::string_view close = "";
  JsonReader::Quotes quotes = JsonReader::Quotes::kJson;
};

struct JsonCallsSyntax {
  std::string_view close = "";
  bool key_is_name = false;       // {"f": {...}} rather than {"name": "f", ...}
  bool only_known_tools = false;  // it may be JSON that is no call
};

struct PythonSyntax {
  std::string_view close = "";
};

// A text that opens calls. Which syntax follows shows at the first byte that is no white space:
// '{' or '[' the JSON one, anything else the other, as far as the family has them.
struct CallOpening {
  std::string_view text;
  const JsonCallsSyntax* json = nullptr;
  const XmlSyntax* xml = nullptr;
  bool inside_call = false;  // xml: the text is already xml->call_open
  const NamedJsonSyntax* named = nullptr;
  const PythonSyntax* python = nullptr;
};

// A row reads best with its family first.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct ToolCallFormat {
  ToolCallFamily family;
  std::string_view name;  // as in documentation and tests
  std::span<const CallOpening> openings;
  // Texts without meaning of their own, such as the end of a list of calls.
  std::span<const std::string_view> silent = {};
  // The markup consists of the vocabulary's special tokens: it is never quoted, only meant.
  bool markup_is_tokens = false;
  // An answer that is nothing but JSON may be a call, if it names one of the request's tools.
  bool may_be_bare = false;
};

struct ChatFormat {
  ToolCallFamily tool_calls = ToolCallFamily::kGeneric;
  ReasoningFamily reasoning = ReasoningFamily::kNone;

  bool operator==(const ChatFormat&) const = default;
};

[[nodiscard]] const ToolCallFormat& tool_call_format(ToolCallFamily family);
[[nodiscard]] ReasoningTags reasoning_tags(ReasoningFamily family);
// What stands around and within a call, if these are tokens of the vocabulary; else none.
[[nodiscard]] std::vector<std::string_view> token_markup(ToolCallFamily family);
[[nodiscard]] std::string_view name(ToolCallFamily family);
[[nodiscard]] std::string_view name(ReasoningFamily family);
[[nodiscard]] std::optional<ToolCallFamily> find_tool_call_family(std::string_view name);
[[nodiscard]] std::optional<ReasoningFamily> find_reasoning_family(std::string_view name);

[[nodiscard]] ChatFormat detect_chat_format(std::string_view template_text);
// Whether a prompt ends with reasoning that it opened itself: the answer then starts in the middle.
[[nodiscard]] bool opens_reasoning(std::string_view prompt, ReasoningFamily family);

}  // namespace slipstream
