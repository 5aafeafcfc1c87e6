#include "server/turn/chat_turn.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "server/bounded_json.h"
#include "server/demand/answer_grammar.h"
#include "server/output/output_parser.h"
#include "server/recall/recall_limits.h"
#include "server/recall/rescue.h"
#include "server/recall/retrieval.h"
#include "server/turn/generation.h"
#include "server/turn/prompt_boundaries.h"
#include "server/turn/reasoning.h"

namespace slipstream {
namespace {

// Limits the JSON values of messages and tools. Each takes many times the memory of its text, and
// most become tokens. A conversation with more values than this never fits into the context, and is
// refused before the template reads it.
std::size_t n_values_max(const ServedModel& model) {
  constexpr std::size_t kPerToken = 4;  // clients add values that no template reads
  constexpr std::size_t kAlways = 1024;
  return kAlways + kPerToken * static_cast<std::size_t>(model.engine->n_context());
}

// The same for a conversation of which the oldest turns may leave.
std::size_t n_values_of_conversation_max(const ServedModel& model) {
  return (model.rescue == nullptr ? 1 : kRecallLimits.windows_max) * n_values_max(model);
}

ApiResult<void> check_values(std::span<const FieldSize> fields, std::size_t n_max, int n_context) {
  std::size_t n = 0;
  for (const FieldSize& field : fields) n += field.n_values;
  if (n <= n_max) return {};
  const FieldSize& largest = *std::ranges::max_element(fields, {}, &FieldSize::n_values);
  return std::unexpected(ApiError{
      .message = format_text("The conversation has {} values, {} of them in '{}', more than the {} "
                             "that a context of {} tokens takes: leave out what is old, or tools",
                             n, largest.n_values, largest.name, n_max, n_context),
      .param = std::string(largest.name),
      .code = "context_length_exceeded"});
}

// Moves the messages and variables out of the request: the template's values are made of them.
ApiResult<MarkedText> render(const ServedModel& model, ChatRequest& request) {
  set_reasoning_variables(request.reasoning, model.chat_template->abilities(),
                          request.template_variables);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Result<MarkedText> text =
      model.chat_template->render({.messages = std::move(request.messages),
                                   .tools = request.tools,
                                   .add_generation_prompt = request.adds_generation_prompt,
                                   .continues_last = request.continues_last,
                                   .variables = std::move(request.template_variables),
                                   .now = now,
                                   .n_argument_values_max = n_values_max(model)});
  if (!text) return refuse("messages", text.error().message);
  return std::move(*text);
}

ApiResult<std::vector<Token>> tokens_of(const ServedModel& model, const MarkedText& prompt) {
  const Vocabulary& vocabulary = model.engine->vocabulary();
  const int n_context = model.engine->n_context();
  if (const auto fits = check_length(vocabulary, "messages", prompt.text(), n_context); !fits) {
    return std::unexpected(fits.error());
  }
  Result<std::vector<Token>> tokens =
      vocabulary.tokenize_chat(prompt, static_cast<std::size_t>(n_context));
  if (!tokens) return refuse("messages", tokens.error().message);
  return std::move(*tokens);
}

// Room that is kept for the answer.
std::size_t n_answer_of(const GenerationOptions& options, int n_context) {
  const int n_usual = n_context / 8;
  const int n_asked = options.max_tokens.value_or(n_usual);
  const bool may_be_less = options.may_shorten || !options.max_tokens;
  return static_cast<std::size_t>(std::max(1, may_be_less ? std::min(n_asked, n_usual) : n_asked));
}

// Lets the oldest turns of a conversation leave if it is longer than its window and the server
// rescues those. Returns how many left.
ApiResult<std::size_t> make_fit(const ServedModel& model, ChatRequest& request,
                                std::vector<std::size_t> n_added) {
  if (model.rescue == nullptr) return 0;
  const Vocabulary& vocabulary = model.engine->vocabulary();
  const int n_context = model.engine->n_context();
  Json messages = std::move(request.messages);  // before the request is copied
  const auto check = [&](const Json& kept) {
    const FieldSize sizes[] = {{"messages", n_values(kept)}, {"tools", n_values(request.tools)}};
    return check_values(sizes, n_values_max(model), n_context);
  };
  const std::size_t n_answer = n_answer_of(request.options, n_context);
  const auto count_tokens = [&](std::string_view text) {
    return vocabulary.tokenize(text, false, false).transform([](const std::vector<Token>& tokens) {
      return tokens.size();
    });
  };
  // What a template refuses is told when the prompt is made.
  const auto fits = [&](const Json& kept) {
    if (!check(kept)) return false;
    ChatRequest shorter = request;
    shorter.messages = kept;
    const ApiResult<MarkedText> prompt = render(model, shorter);
    if (!prompt) return true;
    const ApiResult<std::vector<Token>> tokens = tokens_of(model, *prompt);
    return tokens && tokens->size() + n_answer <= static_cast<std::size_t>(n_context);
  };
  const Result<std::size_t> n_tools =
      request.tools.is_null() ? Result<std::size_t>(0) : count_tokens(dump(request.tools));
  if (!n_tools) return refuse("tools", n_tools.error().message);
  ApiResult<Rescued> rescued =
      model.rescue->rescue({.messages = std::move(messages),
                            .n_added = std::move(n_added),
                            .n_context = static_cast<std::size_t>(n_context),
                            .n_answer = n_answer,
                            .n_beside = *n_tools,
                            .count_tokens = count_tokens,
                            .fits = fits});
  if (!rescued) return std::unexpected(rescued.error());
  if (const auto checked = check(rescued->messages); !checked) {
    return std::unexpected(checked.error());
  }
  request.messages = std::move(rescued->messages);
  return rescued->n_turns_dropped;
}

// What a conversation got and lost before it became a prompt.
struct Recalled {
  std::shared_ptr<const ShownSources> sources = {};  // null: none
  std::size_t n_turns_dropped = 0;
};

// Puts before messages what the index has on them, and makes the conversation fit.
ApiResult<Recalled> recall(const ServedModel& model, ChatRequest& request, const Client& client) {
  Retrieved retrieved;
  if (model.retrieval != nullptr) {
    ApiResult<Retrieved> found = model.retrieval->add_to(request, model.engine->vocabulary(),
                                                         model.engine->n_context(), client);
    if (!found) return std::unexpected(found.error());
    retrieved = std::move(*found);
  } else if (request.retrieval && request.retrieval->is_on) {
    return refuse("retrieval",
                  "'retrieval': the server has no index: start it with --retrieve or --mcp");
  }
  Recalled recalled;
  if (!retrieved.sources.all.empty()) {
    recalled.sources = std::make_shared<const ShownSources>(std::move(retrieved.sources));
  }
  const ApiResult<std::size_t> n_turns_dropped =
      make_fit(model, request, std::move(retrieved.n_added));
  if (!n_turns_dropped) return std::unexpected(n_turns_dropped.error());
  recalled.n_turns_dropped = *n_turns_dropped;
  return recalled;
}

}  // namespace

ApiResult<void> check_values(const ServedModel& model, std::span<const FieldSize> fields) {
  return check_values(fields, n_values_of_conversation_max(model), model.engine->n_context());
}

ApiResult<void> check_chat(const ServedModel& model, const Json& body,
                           std::initializer_list<std::string_view> fields) {
  // submit() checks again.
  if (const Result<void> room = model.engine->check_room(); !room) {
    return std::unexpected(to_api_error(room.error()));
  }
  if (!model.chat_template) {
    return refuse("model", "This model has no chat template: use /v1/completions");
  }
  std::vector<FieldSize> sizes;
  for (const std::string_view name : fields) {
    if (const Json* value = member(body, name)) sizes.push_back({name, n_values(*value)});
  }
  return check_values(model, sizes);
}

ApiResult<std::string> prompt_text(const ServedModel& model, ChatRequest request,
                                   const Client& client) {
  if (const auto recalled = recall(model, request, client); !recalled) {
    return std::unexpected(recalled.error());
  }
  const ApiResult<MarkedText> prompt = render(model, request);
  if (!prompt) return std::unexpected(prompt.error());
  return prompt->text();
}

ApiResult<std::size_t> count_prompt(const ServedModel& model, ChatRequest request,
                                    const Client& client) {
  if (const auto recalled = recall(model, request, client); !recalled) {
    return std::unexpected(recalled.error());
  }
  const ApiResult<MarkedText> prompt = render(model, request);
  if (!prompt) return std::unexpected(prompt.error());
  const ApiResult<std::vector<Token>> tokens = tokens_of(model, *prompt);
  if (!tokens) return std::unexpected(tokens.error());
  // If there are more tokens than the context has room for, not all of them were counted.
  const auto room = tokens_to_generate("messages", tokens->size(), {}, model.engine->n_context());
  if (!room) return std::unexpected(room.error());
  return tokens->size();
}

ApiResult<std::unique_ptr<Turn>> begin_chat(ServedModel& model, HttpExchange& exchange,
                                            ChatRequest request, const Client& client) {
  ApiResult<Recalled> recalled = recall(model, request, client);
  if (!recalled) return std::unexpected(recalled.error());
  const std::string first_words = first_words_of_user(request.messages);
  const ApiResult<MarkedText> rendered = render(model, request);
  if (!rendered) return std::unexpected(rendered.error());
  const std::string& prompt = rendered->text();
  const ApiResult<std::vector<Token>> tokens = tokens_of(model, *rendered);
  if (!tokens) return std::unexpected(tokens.error());
  const ApiResult<int> n_tokens =
      tokens_to_generate("messages", tokens->size(), request.options, model.engine->n_context());
  if (!n_tokens) return std::unexpected(n_tokens.error());
  ApiResult<std::string> grammar =
      grammar_of_answer(*model.chat_template, model.engine->vocabulary(), request, prompt);
  if (!grammar) return std::unexpected(grammar.error());
  request.options.sampling.grammar = std::move(*grammar);

  const ChatFormat& format = model.chat_template->format();
  ReasoningParams& reasoning = request.options.sampling.reasoning;
  reasoning = reasoning_params(format, prompt);
  reasoning.n_tokens_max = reasoning_limit(request.reasoning, model.chat_template->abilities());
  auto turn = std::make_unique<Turn>(
      model, exchange, client.account,
      Turn::Options{
          .n_per_prompt = request.options.n,
          .parsing = OutputParser::Options{.format = format,
                                           .tools = ToolSet(request.tools),
                                           .starts_in_reasoning = reasoning.is_open,
                                           .ends_with_call = !request.tool_choice.allows_several},
          .sources = std::move(recalled->sources),
          .n_turns_dropped = recalled->n_turns_dropped});
  std::vector<int> boundaries;
  if (model.engine->saves_at_boundaries()) {
    boundaries = prompt_boundaries(model.engine->vocabulary(), *rendered, *tokens, first_words);
  }
  for (int i = 0; i < request.options.n; ++i) {
    GenerateRequest generate = make_request(request.options, *tokens, *n_tokens, i, client);
    generate.shows_control_tokens = true;  // markup consists of them
    generate.boundaries = boundaries;
    const Result<void> submitted = turn->submit(std::move(generate));
    if (!submitted) return std::unexpected(to_api_error(submitted.error()));
  }
  client.charge_prompt(tokens->size());
  if (recalled->n_turns_dropped > 0 && model.metrics != nullptr) model.metrics->count_rescued();
  return turn;
}

}  // namespace slipstream
