#include "server/turn/chat_prompt.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "server/bounded_json.h"
#include "server/recall/recall_limits.h"
#include "server/recall/rescue.h"
#include "server/recall/retrieval.h"
#include "server/recall/turn_cut.h"
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

ApiResult<PromptTokens> tokens_of(const ServedModel& model, const MarkedText& prompt,
                                  const PromptImages& images, bool are_all_shown) {
  const Vocabulary& vocabulary = model.engine->vocabulary();
  const int n_context = model.engine->n_context();
  if (const auto fits = check_length(vocabulary, "messages", prompt.text(), n_context); !fits) {
    return std::unexpected(fits.error());
  }
  if (!images.images.empty()) return with_images(model, prompt, images, are_all_shown);
  Result<std::vector<Token>> tokens =
      vocabulary.tokenize_chat(prompt, static_cast<std::size_t>(n_context));
  if (!tokens) return refuse("messages", tokens.error().message);
  return PromptTokens{.tokens = std::move(*tokens)};
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
                                const PromptImages& images, std::vector<std::size_t> n_added) {
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
    const ApiResult<PromptTokens> whole = tokens_of(model, *prompt, images, false);
    return whole && whole->tokens.size() + n_answer <= static_cast<std::size_t>(n_context);
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

// Puts before messages what the index has on them.
ApiResult<Retrieved> retrieve(const ServedModel& model, ChatRequest& request, const Client& client,
                              std::size_t n_gone = 0) {
  if (model.retrieval != nullptr) {
    return model.retrieval->add_to(request, model.engine->vocabulary(), model.engine->n_context(),
                                   client, n_gone);
  }
  if (request.retrieval && !request.retrieval->chat.empty()) {
    return refuse(
        "retrieval.chat",
        "'retrieval.chat': chats have no files here: start the server with --attachments");
  }
  if (request.retrieval && request.retrieval->is_on) {
    return refuse("retrieval",
                  "'retrieval': the server has no index: start it with --retrieve or --mcp");
  }
  return Retrieved{};
}

}  // namespace

ApiResult<void> check_values(const ServedModel& model, std::span<const FieldSize> fields) {
  return check_values(fields, n_values_of_conversation_max(model), model.engine->n_context());
}

ApiResult<ChatPrompt> make_prompt(const ServedModel& model, ChatRequest& request,
                                  const Client& client) {
  ApiResult<PromptImages> images = take_images(model, request.messages);
  if (!images) return std::unexpected(images.error());
  const bool may_leave = model.rescue != nullptr && model.retrieval != nullptr;
  const Json said = may_leave ? request.messages : Json();
  ApiResult<Retrieved> retrieved = retrieve(model, request, client);
  if (!retrieved) return std::unexpected(retrieved.error());
  ApiResult<std::size_t> n_turns_dropped = make_fit(model, request, *images, retrieved->n_added);
  if (may_leave && n_turns_dropped && *n_turns_dropped > 0) {
    const std::size_t n_gone = turns_of(said).begins[*n_turns_dropped];
    const auto n_added_to_gone =
        std::span(retrieved->n_added).first(std::min(n_gone, retrieved->n_added.size()));
    if (std::ranges::any_of(n_added_to_gone, [](std::size_t n) { return n > 0; })) {
      // Places left with their turns: this message may need them again.
      request.messages = said;
      retrieved = retrieve(model, request, client, n_gone);
      if (!retrieved) return std::unexpected(retrieved.error());
      n_turns_dropped = make_fit(model, request, *images, retrieved->n_added);
    }
  }
  if (!n_turns_dropped) return std::unexpected(n_turns_dropped.error());
  std::string first_words = first_words_of_user(request.messages);
  ApiResult<MarkedText> text = render(model, request);
  if (!text) return std::unexpected(text.error());
  std::shared_ptr<const ShownSources> sources;
  if (!retrieved->sources.all.empty()) {
    sources = std::make_shared<const ShownSources>(std::move(retrieved->sources));
  }
  return ChatPrompt{.text = std::move(*text),
                    .first_words = std::move(first_words),
                    .sources = std::move(sources),
                    .n_turns_dropped = *n_turns_dropped,
                    .images = std::move(*images)};
}

ApiResult<PromptTokens> tokens_of(const ServedModel& model, const ChatPrompt& prompt) {
  return tokens_of(model, prompt.text, prompt.images, prompt.n_turns_dropped == 0);
}

}  // namespace slipstream
