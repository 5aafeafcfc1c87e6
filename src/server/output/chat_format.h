// ChatFormat: how a family of models writes tool calls and reasoning, as data.
//
// A family is one row of a table (chat_format.cpp): which texts open a call, and in which of four
// syntaxes the call is then written. There is one parser per syntax, never per family. The model's
// chat template, which teaches the model the same markup, tells its family.
//
// Threads: immutable. Errors: none; a template without known markup is kGeneric.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/output/json_reader.h"

namespace slipstream {

enum class ToolCallFamily : std::uint8_t {
  kGeneric,        // JSON, bare or in <tool_call>: asked of models whose template has no tools
  kHermes,         // <tool_call>{"name": ..., "arguments": ...}</tool_call>: Hermes, Qwen 2.5 and 3
  kQwenXml,        // <tool_call><function=f><parameter=p>...: Qwen3-Coder, Qwen 3.5, Nemotron 3
  kSeedXml,        // the same within <seed:tool_call>
  kGlm,            // <tool_call>f<arg_key>p</arg_key><arg_value>...</arg_value></tool_call>
  kMiniMaxXml,     // <minimax:tool_call><invoke name="f"><parameter name="p">...
  kMiniCpmXml,     // <function name="f"><param name="p">...
  kDsml,           // DeepSeek V3.2 and V4: the same with ｜DSML｜ in every tag, and typed
  kDeepSeek,       // <｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}: R1, V3, V3.1
  kKimi,           // <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}
  kSolar,          // <|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{...}
  kMistral,        // [TOOL_CALLS][{...}] and [TOOL_CALLS]f[ARGS]{...}
  kLlama3,         // {"name": ..., "parameters": ...} as the whole answer, or after <|python_tag|>
  kHarmony,        // gpt-oss: channels, and calls as messages to=functions.f
  kGemma,          // ```tool_code f(p="...")```, or JSON: Gemma up to 3
  kGemma4,         // <|tool_call>call:f{p:<|"|>...<|"|>}<tool_call|>
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
  kNone,      // none in the template; an answer may still begin with <think>
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

// How much a model reasons, as clients and templates name it, from least to most.
inline constexpr std::string_view kReasoningEfforts[] = {"minimal", "low",   "medium",
                                                         "high",    "xhigh", "max"};

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
  bool name_ends_at_markup = false;  // a name may also end where the next tag begins
  bool value_on_own_lines = false;   // a line feed after the tag and before the next one is markup
  bool may_be_cdata = false;         // <![CDATA[...]]> around a value is markup
};

// A name and then a JSON object, with fixed texts around both.
struct NamedJsonSyntax {
  std::string_view name_after = "";   // the text before the name, if present
  std::string_view name_prefix = "";  // a namespace before the name, unknown to clients
  std::array<std::string_view, 2> after_name = {};
  std::string_view close = "";
  JsonReader::Quotes quotes = JsonReader::Quotes::kJson;
};

struct JsonCallsSyntax {
  std::string_view close = "";
  bool key_is_name = false;       // {"f": {...}} rather than {"name": "f", ...}
  bool only_known_tools = false;  // the JSON may be no call at all
};

struct PythonSyntax {
  std::string_view close = "";
};

// A text that opens calls. The first byte that is not white space tells which syntax follows: '{'
// or '[' means the JSON syntax, anything else the other one, if the family has them.
struct CallOpening {
  std::string_view text;
  const JsonCallsSyntax* json = nullptr;
  const XmlSyntax* xml = nullptr;
  bool inside_call = false;  // xml: `text` already is xml->call_open
  const NamedJsonSyntax* named = nullptr;
  const PythonSyntax* python = nullptr;
};

// A row reads best with its family first.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct ToolCallFormat {
  ToolCallFamily family;
  std::string_view name;  // as used in documentation and tests
  std::span<const CallOpening> openings;
  // Texts without a meaning of their own, such as the end of a list of calls.
  std::span<const std::string_view> silent = {};
  // The markup consists of special tokens of the vocabulary, so it is never a mere quotation.
  bool markup_is_tokens = false;
  // An answer that is only JSON may be a call, if it names one of the request's tools.
  bool may_be_bare = false;
};

struct ChatFormat {
  ToolCallFamily tool_calls = ToolCallFamily::kGeneric;
  ReasoningFamily reasoning = ReasoningFamily::kNone;

  bool operator==(const ChatFormat&) const = default;
};

[[nodiscard]] const ToolCallFormat& tool_call_format(ToolCallFamily family);
[[nodiscard]] ReasoningTags reasoning_tags(ReasoningFamily family);
// The texts around and within a call if they are tokens of the vocabulary; otherwise empty.
[[nodiscard]] std::vector<std::string_view> token_markup(ToolCallFamily family);
[[nodiscard]] std::string_view name(ToolCallFamily family);
[[nodiscard]] std::string_view name(ReasoningFamily family);
[[nodiscard]] std::optional<ToolCallFamily> find_tool_call_family(std::string_view name);
[[nodiscard]] std::optional<ReasoningFamily> find_reasoning_family(std::string_view name);

[[nodiscard]] ChatFormat detect_chat_format(std::string_view template_text);
// How reasoning begins and ends, and which text then precedes what follows.
struct ReasoningMarkup {
  std::string_view open;
  std::string_view close;
  std::string_view before_answer = "";
};
[[nodiscard]] ReasoningMarkup reasoning_markup(ReasoningFamily family);
// The texts that OutputParser treats as the end of reasoning.
[[nodiscard]] std::vector<std::string> ends_of_reasoning(const ChatFormat& format);
// Whether the prompt ends with an opening reasoning tag. The answer then starts
// inside the reasoning.
[[nodiscard]] bool opens_reasoning(std::string_view prompt, ReasoningFamily family);

}  // namespace slipstream
