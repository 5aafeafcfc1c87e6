// The chat templates of public models, if they are available (tests/README.md). Each must belong to
// the family in this table and render every kind of conversation except those named here.
#include "server/template/public_templates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "server/json.h"
#include "server/template/chat_template.h"

namespace slipstream {
namespace {

using T = ToolCallFamily;
using R = ReasoningFamily;

const std::map<std::string, ChatFormat>& expected_formats() {
  static const std::map<std::string, ChatFormat> kFormats = {
      {"Apertus-8B-Instruct", {T::kApertus, R::kApertus}},
      {"Apriel-1.6-15b-Thinker-fixed", {T::kToolCallsTag, R::kApriel}},
      {"Bielik-11B-v3.0-Instruct", {T::kHermes, R::kThink}},
      {"ByteDance-Seed-OSS", {T::kSeedXml, R::kSeed}},
      {"Cohere2MoE", {T::kCohere, R::kCohere}},
      {"CohereForAI-c4ai-command-r-plus-tool_use", {T::kGeneric, R::kNone}},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {T::kCohere, R::kCohere}},
      {"GLM-4.6", {T::kGlm, R::kThink}},
      {"GLM-4.7-Flash", {T::kGlm, R::kThink}},
      {"GigaChat3-10B-A1.8B", {T::kGeneric, R::kNone}},
      {"GigaChat3.1-10B-A1.8B", {T::kGeneric, R::kNone}},
      {"HuggingFaceTB-SmolLM3-3B", {T::kGeneric, R::kThink}},
      {"Kimi-K2-Instruct", {T::kKimi, R::kNone}},
      {"Kimi-K2-Thinking", {T::kKimi, R::kThink}},
      {"Kimi-K3", {T::kGeneric, R::kNone}},
      {"LFM2-8B-A1B", {T::kLfm, R::kNone}},
      {"LFM2.5-8B-A1B", {T::kLfm, R::kThink}},
      {"LFM2.5-Instruct", {T::kLfm, R::kThink}},
      {"MiMo-VL", {T::kHermes, R::kNone}},
      {"MiniMax-M1", {T::kToolCallsTag, R::kNone}},
      {"MiniMax-M2", {T::kMiniMaxXml, R::kThink}},
      {"MiniMax-M3", {T::kHermes, R::kMiniMax}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {T::kMistral, R::kNone}},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {T::kQwenXml, R::kThink}},
      {"NVIDIA-Nemotron-Nano-v2", {T::kNemotron2, R::kThink}},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {T::kHermes, R::kNone}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {T::kHermes, R::kNone}},
      {"Qwen-QwQ-32B", {T::kHermes, R::kThink}},
      {"Qwen-Qwen2.5-7B-Instruct", {T::kHermes, R::kNone}},
      {"Qwen-Qwen3-0.6B", {T::kHermes, R::kThink}},
      {"Qwen3-Coder", {T::kQwenXml, R::kNone}},
      {"Qwen3.5-4B", {T::kQwenXml, R::kThink}},
      {"Reka-Edge", {T::kHermes, R::kThink}},
      {"StepFun3.5-Flash", {T::kQwenXml, R::kThink}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {T::kDeepSeek, R::kThink}},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", {T::kDeepSeek, R::kThink}},
      {"deepseek-ai-DeepSeek-V3.1", {T::kDeepSeek, R::kThink}},
      {"deepseek-ai-DeepSeek-V3.2", {T::kDsml, R::kThink}},
      {"deepseek-ai-DeepSeek-V4", {T::kDsml, R::kThink}},
      {"deepseek-ai-DeepSeek-V4-Flash-0731", {T::kDsml, R::kThink}},
      {"fireworks-ai-llama-3-firefunction-v2", {T::kToolCallToken, R::kNone}},
      {"google-gemma-2-2b-it", {T::kGemma, R::kNone}},
      {"google-gemma-4-31B-it", {T::kGemma4, R::kGemma4}},
      {"google-gemma-4-31B-it-interleaved", {T::kGemma4, R::kGemma4}},
      {"ibm-granite-granite-3.3-2B-Instruct", {T::kToolCallToken, R::kThink}},
      {"ibm-granite-granite-4.0", {T::kHermes, R::kNone}},
      {"ibm-granite-granite-4.1", {T::kHermes, R::kNone}},
      {"llama-cpp-deepseek-r1", {T::kDeepSeek, R::kThink}},
      {"llama-cpp-rwkv-world", {T::kGeneric, R::kThink}},
      {"meetkai-functionary-medium-v3.1", {T::kFunctionary31, R::kNone}},
      {"meetkai-functionary-medium-v3.2", {T::kGeneric, R::kNone}},
      {"meta-llama-Llama-3.1-8B-Instruct", {T::kLlama3, R::kNone}},
      {"meta-llama-Llama-3.2-3B-Instruct", {T::kLlama3, R::kNone}},
      {"meta-llama-Llama-3.3-70B-Instruct", {T::kLlama3, R::kNone}},
      {"microsoft-Phi-3.5-mini-instruct", {T::kGeneric, R::kNone}},
      {"mistralai-Ministral-3-14B-Reasoning-2512", {T::kMistral, R::kMistral}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {T::kMistral, R::kNone}},
      {"moonshotai-Kimi-K2", {T::kKimi, R::kNone}},
      {"muse-glimmer", {T::kGeneric, R::kNone}},
      {"openai-gpt-oss-120b", {T::kHarmony, R::kHarmony}},
      {"openbmb-MiniCPM5-1B", {T::kMiniCpmXml, R::kThink}},
      {"poolside-Laguna-S-2.1", {T::kGlm, R::kThink}},
      {"poolside-Laguna-XS-2.1", {T::kGlm, R::kThink}},
      {"poolside-Laguna-XS.2", {T::kGlm, R::kThink}},
      {"tencent-Hy3", {T::kGeneric, R::kNone}},
      {"unsloth-Apriel-1.5", {T::kToolCallsTag, R::kApriel}},
      {"unsloth-mistral-Devstral-Small-2507", {T::kMistral, R::kNone}},
      {"upstage-Solar-Open-100B", {T::kSolar, R::kSolar}},
  };
  return kFormats;
}

// Conversations that a template itself refuses or leaves out, which is not a defect here.
bool is_left_out(const std::string& model, const std::string& kind) {
  static const std::multimap<std::string, std::string> kLeftOut = {
      // This template needs the variables "functions" and "datetime".
      {"fireworks-ai-llama-3-firefunction-v2", "plain"},
      {"fireworks-ai-llama-3-firefunction-v2", "system"},
      {"fireworks-ai-llama-3-firefunction-v2", "tools"},
      {"fireworks-ai-llama-3-firefunction-v2", "round trip"},
      {"fireworks-ai-llama-3-firefunction-v2", "reasoning"},
  };
  const auto [begin, end] = kLeftOut.equal_range(model);
  return std::any_of(begin, end, [&](const auto& item) { return item.second == kind; });
}

const Json kTools = Json::parse(R"([{"type": "function", "function": {"name": "get_weather",
  "description": "Tells the weather.", "parameters": {"type": "object", "properties":
  {"city": {"type": "string", "description": "Which city."}}, "required": ["city"]}}}])");

struct Kind {
  const char* name;
  const char* messages;
  bool has_tools;
  std::vector<std::string> needles;  // texts that the prompt must contain
};

const std::vector<Kind> kKinds = {
    {"plain",
     R"([{"role": "user", "content": "one-u"}, {"role": "assistant", "content": "two-a"},
         {"role": "user", "content": "three-u"}])",
     false,
     {"one-u", "two-a", "three-u"}},
    {"system",
     R"([{"role": "system", "content": "zero-s"}, {"role": "user", "content": "one-u"}])",
     false,
     {"zero-s", "one-u"}},
    {"tools",
     R"([{"role": "system", "content": "zero-s"}, {"role": "user", "content": "one-u"}])",
     true,
     {"zero-s", "one-u", "get_weather", "Tells the weather."}},
    {"round trip",
     R"([{"role": "user", "content": "one-u"},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
           "function": {"name": "get_weather", "arguments": "{\"city\": \"two-a\"}"}}]},
         {"role": "tool", "tool_call_id": "call_1", "content": "three-t"}])",
     true,
     {"one-u", "get_weather", "two-a", "three-t"}},
    {"reasoning",
     R"([{"role": "user", "content": "one-u"},
         {"role": "assistant", "content": "two-a", "reasoning_content": "thought-a"},
         {"role": "user", "content": "three-u"}])",
     false,
     {"one-u", "two-a", "three-u"}},
};

TEST(PublicTemplates, BelongToTheirFamilyAndRender) {
  const std::vector<PublicTemplate> templates = public_templates();
  if (templates.empty()) GTEST_SKIP() << "no templates at hand";
  int n_rendered = 0;
  for (const auto& [model, source] : templates) {
    SCOPED_TRACE(model);
    const ChatFormat format = detect_chat_format(source);
    const auto expected = expected_formats().find(model);
    if (expected != expected_formats().end()) {
      EXPECT_EQ(name(format.tool_calls), name(expected->second.tool_calls));
      EXPECT_EQ(name(format.reasoning), name(expected->second.reasoning));
    }
    const auto chat = ChatTemplate::create(source, "<bos>", "<eos>");
    EXPECT_TRUE(chat.has_value()) << chat.error().message;
    if (!chat) continue;
    bool all = true;
    for (const Kind& kind : kKinds) {
      const auto prompt = chat->render(
          {.messages = Json::parse(kind.messages), .tools = kind.has_tools ? kTools : Json()});
      std::string missing = prompt ? "" : prompt.error().message;
      for (const std::string& needle : kind.needles) {
        if (prompt && !prompt->text().contains(needle)) missing += " without " + needle;
      }
      if (!missing.empty()) std::printf("%s, %s:%s\n", model.c_str(), kind.name, missing.c_str());
      EXPECT_EQ(missing.empty(), !is_left_out(model, kind.name)) << kind.name << ": " << missing;
      all = all && missing.empty();
    }
    n_rendered += all ? 1 : 0;
    const TemplateAbilities& can = chat->abilities();
    std::printf("%-48s %-16s %-9s%s%s%s%s%s%s\n", model.c_str(), name(format.tool_calls).data(),
                name(format.reasoning).data(), can.takes_system ? " system" : "",
                can.takes_tools ? " tools" : "", can.takes_calls ? " calls" : "",
                can.takes_results ? " results" : "", can.wants_parts ? " PARTS" : "",
                can.wants_arguments_as_text ? " TEXT" : "");
  }
  std::printf("%d of %zu templates render every kind of conversation\n", n_rendered,
              templates.size());
}

}  // namespace
}  // namespace slipstream
