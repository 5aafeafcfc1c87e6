#include "server/output/chat_format.h"

#include <algorithm>

#include "base/check.h"
#include "server/ascii.h"

namespace slipstream {
namespace {

using Family = ToolCallFamily;

// Syntaxes. ------------------------------------------------------------------------------------

constexpr JsonCallsSyntax kFencedJson{.close = "```", .only_known_tools = true};
constexpr JsonCallsSyntax kJsonToEnd{};
constexpr JsonCallsSyntax kTaggedJson{.close = "</tool_call>"};
constexpr JsonCallsSyntax kSeedJson{.close = "</seed:tool_call>"};
constexpr JsonCallsSyntax kListJson{.close = "</tool_calls>"};
constexpr JsonCallsSyntax kNemotronJson{.close = "</TOOLCALL>"};
constexpr JsonCallsSyntax kCohereJson{.close = "<|END_ACTION|>"};
constexpr JsonCallsSyntax kApertusJson{.close = "<|tools_suffix|>", .key_is_name = true};
constexpr JsonCallsSyntax kDeepSeekJson{.close = "<｜tool▁call▁end｜>"};

constexpr XmlSyntax kQwen{.call_open = "<function=",
                          .key_open = "<parameter=",
                          .value_close = "</parameter>",
                          .call_close = "</function>",
                          .section_close = "</tool_call>",
                          .value_on_own_lines = true};
constexpr XmlSyntax kSeed{.call_open = "<function=",
                          .key_open = "<parameter=",
                          .value_close = "</parameter>",
                          .call_close = "</function>",
                          .section_close = "</seed:tool_call>"};
constexpr XmlSyntax kGlmXml{.call_open = "<tool_call>",
                            .name_close = "\n",
                            .key_open = "<arg_key>",
                            .key_close = "</arg_key>",
                            .value_open = "<arg_value>",
                            .value_close = "</arg_value>",
                            .call_close = "</tool_call>",
                            .name_ends_at_markup = true};
constexpr XmlSyntax kMiniMax{.call_open = "<invoke name=\"",
                             .key_open = "<parameter name=\"",
                             .value_close = "</parameter>",
                             .call_close = "</invoke>",
                             .section_close = "</minimax:tool_call>"};
constexpr XmlSyntax kMiniCpm{.call_open = "<function name=\"",
                             .key_open = "<param name=\"",
                             .value_close = "</param>",
                             .call_close = "</function>",
                             .may_be_cdata = true};
constexpr XmlSyntax kDsmlXml{.call_open = "<｜DSML｜invoke name=\"",
                             .key_open = "<｜DSML｜parameter name=\"",
                             .value_close = "</｜DSML｜parameter>",
                             .call_close = "</｜DSML｜invoke>"};

constexpr NamedJsonSyntax kDeepSeekNamed{.name_after = "function<｜tool▁sep｜>",
                                         .after_name = {"<｜tool▁sep｜>"},
                                         .close = "<｜tool▁call▁end｜>"};
constexpr NamedJsonSyntax kKimiNamed{.name_prefix = "functions.",
                                     .after_name = {"<|tool_call_argument_begin|>"},
                                     .close = "<|tool_call_end|>"};
constexpr NamedJsonSyntax kSolarNamed{.name_after = "<|tool_call:name|>",
                                      .after_name = {"<|tool_call:args|>"},
                                      .close = "<|tool_call:end|>"};
constexpr NamedJsonSyntax kMistralNamed{.after_name = {"[ARGS]", "[CALL_ID]"}};
constexpr NamedJsonSyntax kFunctionaryNamed{.after_name = {">"}, .close = "</function>"};
constexpr NamedJsonSyntax kGemmaNamed{
    .name_prefix = "call:", .close = "<tool_call|>", .quotes = JsonReader::Quotes::kGemma};

constexpr PythonSyntax kFencedPython{.close = "```"};
constexpr PythonSyntax kLfmPython{.close = "<|tool_call_end|>"};
constexpr PythonSyntax kPythonToEnd{};

// Openings of each family, and the table. --------------------------------------------------------

constexpr CallOpening kFence{.text = "```json", .json = &kFencedJson};
constexpr CallOpening kTag{.text = "<tool_call>", .json = &kTaggedJson};

constexpr CallOpening kTagged[] = {kTag, kFence};
constexpr CallOpening kQwenXml[] = {
    {.text = "<tool_call>", .json = &kTaggedJson, .xml = &kQwen},
    {.text = "<function=", .xml = &kQwen, .inside_call = true},
};
constexpr CallOpening kSeedXml[] = {
    {.text = "<seed:tool_call>", .json = &kSeedJson, .xml = &kSeed},
    {.text = "<function=", .xml = &kSeed, .inside_call = true},
};
constexpr CallOpening kGlm[] = {
    {.text = "<tool_call>", .json = &kTaggedJson, .xml = &kGlmXml, .inside_call = true}};
constexpr CallOpening kMiniMaxXml[] = {
    {.text = "<minimax:tool_call>", .xml = &kMiniMax},
    {.text = "<invoke name=\"", .xml = &kMiniMax, .inside_call = true},
};
constexpr CallOpening kMiniCpmXml[] = {
    {.text = "<function name=\"", .xml = &kMiniCpm, .inside_call = true}};
constexpr CallOpening kDsml[] = {
    {.text = "<｜DSML｜invoke name=\"", .xml = &kDsmlXml, .inside_call = true}};
constexpr CallOpening kDeepSeek[] = {
    {.text = "<｜tool▁call▁begin｜>", .json = &kDeepSeekJson, .named = &kDeepSeekNamed}};
constexpr CallOpening kKimi[] = {{.text = "<|tool_call_begin|>", .named = &kKimiNamed}};
constexpr CallOpening kSolar[] = {{.text = "<|tool_call:begin|>", .named = &kSolarNamed}};
constexpr CallOpening kMistral[] = {
    {.text = "[TOOL_CALLS]", .json = &kJsonToEnd, .named = &kMistralNamed}};
constexpr CallOpening kLlama3[] = {
    {.text = "<|python_tag|>", .json = &kJsonToEnd, .python = &kPythonToEnd}, kTag, kFence};
constexpr CallOpening kGemma[] = {
    {.text = "```tool_code", .json = &kFencedJson, .python = &kFencedPython}, kFence, kTag};
constexpr CallOpening kGemma4[] = {{.text = "<|tool_call>", .named = &kGemmaNamed}};
constexpr CallOpening kToolCallToken[] = {{.text = "<|tool_call|>", .json = &kJsonToEnd},
                                          {.text = "functools", .json = &kJsonToEnd},
                                          kTag};
constexpr CallOpening kToolCallsTag[] = {{.text = "<tool_calls>", .json = &kListJson}, kTag};
constexpr CallOpening kNemotron2[] = {{.text = "<TOOLCALL>", .json = &kNemotronJson}};
constexpr CallOpening kCohere[] = {{.text = "<|START_ACTION|>", .json = &kCohereJson}};
constexpr CallOpening kApertus[] = {{.text = "<|tools_prefix|>", .json = &kApertusJson}};
constexpr CallOpening kLfm[] = {{.text = "<|tool_call_start|>", .python = &kLfmPython}};
constexpr CallOpening kFunctionary31[] = {
    {.text = "<function=", .named = &kFunctionaryNamed},
    {.text = "<|python_tag|>", .json = &kJsonToEnd, .python = &kPythonToEnd},
};

constexpr std::string_view kTagEnd[] = {"</tool_call>"};
constexpr std::string_view kQwenEnd[] = {"</tool_call>", "</function>"};
constexpr std::string_view kSeedEnd[] = {"</seed:tool_call>", "</function>"};
constexpr std::string_view kMiniMaxEnd[] = {"</minimax:tool_call>"};
constexpr std::string_view kDsmlSections[] = {"<｜DSML｜function_calls>",
                                              "</｜DSML｜function_calls>", "<｜DSML｜tool_calls>",
                                              "</｜DSML｜tool_calls>"};
constexpr std::string_view kDeepSeekSections[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
                                                  "<｜tool▁call▁end｜>"};
constexpr std::string_view kKimiSections[] = {"<|tool_calls_section_begin|>",
                                              "<|tool_calls_section_end|>", "<|tool_call_end|>"};
constexpr std::string_view kSolarSections[] = {"<|begin|>assistant", "<|tool_calls|>",
                                               "<|content|>", "<|calls|>", "<|tool_call:end|>"};
constexpr std::string_view kHarmonyEnds[] = {"<|end|>", "<|return|>", "<|call|>", "<|message|>"};
constexpr std::string_view kGemma4End[] = {"<tool_call|>"};
constexpr std::string_view kToolCallTokenEnd[] = {"<|/tool_call|>"};
constexpr std::string_view kCohereSections[] = {"<|START_RESPONSE|>", "<|END_RESPONSE|>",
                                                "<|START_TEXT|>", "<|END_TEXT|>", "<|END_ACTION|>"};
constexpr std::string_view kApertusEnd[] = {"<|tools_suffix|>"};
constexpr std::string_view kLfmEnd[] = {"<|tool_call_end|>"};
constexpr std::string_view kLlama3End[] = {"<|eom_id|>", "</tool_call>"};

constexpr bool kTokens = true;
constexpr bool kBare = true;
// In the order of ToolCallFamily.
constexpr ToolCallFormat kFormats[kToolCallFamilies] = {
    {Family::kGeneric, "generic", kTagged, kTagEnd, !kTokens, kBare},
    {Family::kHermes, "hermes", kTagged, kTagEnd, !kTokens, kBare},
    {Family::kQwenXml, "qwen-xml", kQwenXml, kQwenEnd},
    {Family::kSeedXml, "seed-xml", kSeedXml, kSeedEnd},
    {Family::kGlm, "glm", kGlm, kTagEnd},
    {Family::kMiniMaxXml, "minimax-xml", kMiniMaxXml, kMiniMaxEnd},
    {Family::kMiniCpmXml, "minicpm-xml", kMiniCpmXml},
    {Family::kDsml, "dsml", kDsml, kDsmlSections, kTokens},
    {Family::kDeepSeek, "deepseek", kDeepSeek, kDeepSeekSections, kTokens},
    {Family::kKimi, "kimi", kKimi, kKimiSections, kTokens},
    {Family::kSolar, "solar", kSolar, kSolarSections, kTokens},
    {Family::kMistral, "mistral", kMistral, {}, kTokens},
    {Family::kLlama3, "llama3", kLlama3, kLlama3End, !kTokens, kBare},
    {Family::kHarmony, "harmony", {}, kHarmonyEnds, kTokens},
    {Family::kGemma, "gemma", kGemma, {}, !kTokens, kBare},
    {Family::kGemma4, "gemma4", kGemma4, kGemma4End, kTokens},
    {Family::kToolCallToken, "tool-call-token", kToolCallToken, kToolCallTokenEnd, !kTokens, kBare},
    {Family::kToolCallsTag, "tool-calls-tag", kToolCallsTag},
    {Family::kNemotron2, "nemotron2", kNemotron2},
    {Family::kCohere, "cohere", kCohere, kCohereSections, kTokens},
    {Family::kApertus, "apertus", kApertus, kApertusEnd, kTokens},
    {Family::kLfm, "lfm", kLfm, kLfmEnd, kTokens},
    {Family::kFunctionary31, "functionary31", kFunctionary31},
};

struct ReasoningRow {
  ReasoningFamily family;
  std::string_view name;
  ReasoningTags tags;
};
// In the order of ReasoningFamily.
constexpr ReasoningRow kReasoning[kReasoningFamilies] = {
    {ReasoningFamily::kNone, "none", {"<think>", "</think>"}},
    {ReasoningFamily::kThink, "think", {"<think>", "</think>"}},
    {ReasoningFamily::kThinking, "thinking", {"<thinking>", "</thinking>"}},
    {ReasoningFamily::kSeed, "seed", {"<seed:think>", "</seed:think>"}},
    {ReasoningFamily::kMiniMax, "minimax", {"<mm:think>", "</mm:think>"}},
    {ReasoningFamily::kMistral, "mistral", {"[THINK]", "[/THINK]"}},
    {ReasoningFamily::kCohere, "cohere", {"<|START_THINKING|>", "<|END_THINKING|>"}},
    {ReasoningFamily::kApertus, "apertus", {"<|inner_prefix|>", "<|inner_suffix|>"}},
    {ReasoningFamily::kGemma4, "gemma4", {"<|channel>thought", "<channel|>"}},
    {ReasoningFamily::kApriel,
     "apriel",
     {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}},
    {ReasoningFamily::kSolar, "solar", {"<|think|>", "<|end|>"}},
    {ReasoningFamily::kHarmony, "harmony", {}},
};

// The signs of each family in templates. ---------------------------------------------------------

// A template belongs to the first family in this table of which it contains all texts. More
// specific families stand first.
struct Sign {
  Family family;
  std::array<std::string_view, 2> texts;
};
constexpr Sign kSigns[] = {
    {Family::kHarmony, {"<|channel|>", "analysis"}},
    {Family::kSolar, {"<|tool_call:begin|>"}},
    {Family::kDsml, {"｜DSML｜"}},
    {Family::kDeepSeek, {"<｜tool▁call▁begin｜>"}},
    {Family::kKimi, {"<|tool_call_begin|>", "<|tool_calls_section_begin|>"}},
    {Family::kMistral, {"[TOOL_CALLS]"}},
    {Family::kCohere, {"<|START_ACTION|>"}},
    {Family::kApertus, {"<|tools_prefix|>", "<|tools_suffix|>"}},
    {Family::kLfm, {"<|tool_call_start|>"}},
    {Family::kLfm, {"List of tools: "}},  // LFM2 learns the format only in training
    {Family::kGemma4, {"<|tool_call>call:"}},
    {Family::kSeedXml, {"<seed:tool_call>"}},
    {Family::kMiniMaxXml, {"<minimax:tool_call>", "<invoke name="}},
    {Family::kGlm, {"<arg_key>", "<tool_call>"}},
    {Family::kQwenXml, {"<function=", "<parameter="}},
    {Family::kMiniCpmXml, {"<function name=", "<param name="}},
    {Family::kFunctionary31, {"<function=", "<function"}},
    {Family::kNemotron2, {"<TOOLCALL>"}},
    {Family::kToolCallsTag, {"<tool_calls>"}},
    {Family::kHermes, {"<tool_call>"}},
    {Family::kToolCallToken, {"<|tool_call|>"}},
    {Family::kToolCallToken, {"functools["}},
    {Family::kLlama3, {"<|start_header_id|>", "\"parameters\": "}},
    {Family::kLlama3, {"<|python_tag|>"}},
    {Family::kGemma, {"<start_of_turn>"}},
};

bool contains_all(std::string_view text, const std::array<std::string_view, 2>& parts) {
  return text.contains(parts[0]) && text.contains(parts[1]);
}

}  // namespace

const ToolCallFormat& tool_call_format(ToolCallFamily family) {
  const ToolCallFormat& format = kFormats[static_cast<std::size_t>(family)];
  SLIP_CHECK(format.family == family, "the table is not in the order of ToolCallFamily");
  return format;
}

std::vector<std::string_view> token_markup(ToolCallFamily family) {
  const ToolCallFormat& format = tool_call_format(family);
  std::vector<std::string_view> texts;
  if (!format.markup_is_tokens) return texts;
  for (const CallOpening& opening : format.openings) {
    texts.push_back(opening.text);
    if (opening.json != nullptr) texts.push_back(opening.json->close);
    if (opening.python != nullptr) texts.push_back(opening.python->close);
    if (opening.named != nullptr) {
      texts.push_back(opening.named->name_after);
      texts.append_range(opening.named->after_name);
      texts.push_back(opening.named->close);
    }
  }
  // Silent texts are not included: the ends of turns are among them.
  std::erase(texts, "");
  return texts;
}

ReasoningTags reasoning_tags(ReasoningFamily family) {
  const ReasoningRow& row = kReasoning[static_cast<std::size_t>(family)];
  SLIP_CHECK(row.family == family, "the table is not in the order of ReasoningFamily");
  return row.tags;
}

std::string_view name(ToolCallFamily family) { return tool_call_format(family).name; }
std::string_view name(ReasoningFamily family) {
  return kReasoning[static_cast<std::size_t>(family)].name;
}

std::optional<ToolCallFamily> find_tool_call_family(std::string_view name) {
  const auto* row = std::ranges::find(kFormats, name, &ToolCallFormat::name);
  if (row == std::end(kFormats)) return std::nullopt;
  return row->family;
}

std::optional<ReasoningFamily> find_reasoning_family(std::string_view name) {
  const auto* row = std::ranges::find(kReasoning, name, &ReasoningRow::name);
  if (row == std::end(kReasoning)) return std::nullopt;
  return row->family;
}

ChatFormat detect_chat_format(std::string_view template_text) {
  ChatFormat format;
  for (const Sign& sign : kSigns) {
    if (!contains_all(template_text, sign.texts)) continue;
    format.tool_calls = sign.family;
    break;
  }
  if (format.tool_calls == Family::kHarmony) {
    format.reasoning = ReasoningFamily::kHarmony;
    return format;
  }
  // Some templates name only the closing tag, to remove the reasoning of past answers. The common
  // tags come last, because templates with their own tags may mention them too.
  for (const ReasoningRow& row : kReasoning) {
    const bool is_common =
        row.family == ReasoningFamily::kThink || row.family == ReasoningFamily::kThinking;
    if (row.tags.close.empty() || is_common || row.family == ReasoningFamily::kNone) continue;
    const bool is_plain_text = row.family == ReasoningFamily::kSolar;  // many have "<|end|>"
    if (!template_text.contains(is_plain_text ? row.tags.open : row.tags.close)) continue;
    if (is_plain_text && format.tool_calls != Family::kSolar) continue;
    format.reasoning = row.family;
    return format;
  }
  for (const ReasoningFamily family : {ReasoningFamily::kThinking, ReasoningFamily::kThink}) {
    if (template_text.contains(reasoning_tags(family).close)) format.reasoning = family;
  }
  return format;
}

ReasoningMarkup reasoning_markup(ReasoningFamily family) {
  if (family == ReasoningFamily::kHarmony) {
    return {"<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"};
  }
  const ReasoningTags tags = reasoning_tags(family);
  const bool is_message = family == ReasoningFamily::kSolar;
  return {tags.open, tags.close, is_message ? "<|begin|>assistant" : ""};
}

std::vector<std::string> ends_of_reasoning(const ChatFormat& format) {
  std::vector<std::string> ends = {std::string(reasoning_markup(format.reasoning).close)};
  const ToolCallFormat& row = tool_call_format(format.tool_calls);
  if (!row.markup_is_tokens) return ends;
  for (const CallOpening& opening : row.openings) ends.emplace_back(opening.text);
  if (format.reasoning == ReasoningFamily::kHarmony) {
    ends.insert(ends.end(), {"<|start|>", "<|channel|>"});
  }
  return ends;
}

bool opens_reasoning(std::string_view prompt, ReasoningFamily family) {
  const ReasoningTags tags = reasoning_tags(family);
  if (tags.open.empty()) return false;
  return trim(prompt).ends_with(tags.open);
}

}  // namespace slipstream
