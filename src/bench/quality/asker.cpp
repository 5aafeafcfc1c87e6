#include "bench/quality/asker.h"

#include <future>

#include "server/output/output_parser.h"
#include "server/template/model_template.h"

namespace slipstream::quality {
namespace {

struct Generated {
  std::string text;
  std::vector<Token> tokens;
  Usage usage = {};
};

Result<Generated> generate(Engine& engine, GenerateRequest request) {
  request.sampling.temperature = 0;
  Generated generated;
  std::promise<Ending> ended;  // afterwards the engine's thread no longer touches `generated`
  const Result<RequestId> id = engine.submit(std::move(request), [&](const Event& event) {
    generated.text += event.text;
    for (const Sampled& sampled : event.tokens) generated.tokens.push_back(sampled.token);
    if (event.ending) ended.set_value(*event.ending);
  });
  if (!id) return std::unexpected(id.error());
  const Ending ending = ended.get_future().get();
  generated.usage = ending.usage;
  if (ending.reason == FinishReason::kFailed) return fail(Code::kIo, ending.error);
  return generated;
}

}  // namespace

Result<std::vector<Token>> go_on(Engine& engine, std::vector<Token> prompt, int n_tokens,
                                 bool ignores_end) {
  Result<Generated> generated = generate(
      engine, {.prompt = std::move(prompt), .n_tokens_max = n_tokens, .ignores_end = ignores_end});
  if (!generated) return std::unexpected(generated.error());
  return std::move(generated->tokens);
}

Result<std::string> complete(Engine& engine, const std::string& text, int n_tokens,
                             std::vector<std::string> stops) {
  Result<std::vector<Token>> prompt = engine.vocabulary().tokenize(text, true, false);
  if (!prompt) return std::unexpected(prompt.error());
  Result<Generated> generated = generate(
      engine, {.prompt = std::move(*prompt), .n_tokens_max = n_tokens, .stops = std::move(stops)});
  if (!generated) return std::unexpected(generated.error());
  return std::move(generated->text);
}

Result<MarkedText> prompt_of(const ChatTemplate& chat_template, const Question& question) {
  // Reasoning is turned off if the template can: it would take most of the time, and differences in
  // its wording mean nothing.
  return chat_template.render(
      {.messages = Json::array({{{"role", "user"}, {"content", question.text}}}),
       .tools = question.tools,
       .variables = {{"enable_thinking", false}}});
}

Result<Asker> Asker::create(Engine& engine) {
  Result<ChatTemplate> created = chat_template_of(engine.model(), engine.vocabulary());
  if (!created) return std::unexpected(created.error());
  return Asker(engine, std::move(*created));
}

Result<Reply> Asker::ask(const Question& question) const {
  const Result<MarkedText> prompt = prompt_of(template_, question);
  if (!prompt) return std::unexpected(prompt.error());
  const Vocabulary& vocabulary = engine_->vocabulary();
  Result<std::vector<Token>> tokens =
      vocabulary.tokenize_chat(*prompt, static_cast<std::size_t>(engine_->n_context()));
  if (!tokens) return std::unexpected(tokens.error());
  SamplingParams sampling;
  sampling.grammar = question.grammar;
  const Result<Generated> generated = generate(*engine_, {.prompt = std::move(*tokens),
                                                          .n_tokens_max = question.n_tokens_max,
                                                          .sampling = sampling,
                                                          .shows_control_tokens = true});
  if (!generated) return std::unexpected(generated.error());

  const ChatFormat& format = template_.format();
  OutputParser parser({.format = format,
                       .tools = ToolSet(question.tools),
                       .starts_in_reasoning = opens_reasoning(prompt->text(), format.reasoning)});
  Reply reply{.answer = {}, .usage = generated->usage};
  reply.answer.add(parser.push(generated->text));
  reply.answer.add(parser.finish());
  return reply;
}

}  // namespace slipstream::quality
