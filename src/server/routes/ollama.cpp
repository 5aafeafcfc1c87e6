// POST /api/chat, /api/generate, /api/embed and /api/embeddings: Ollama's API.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "server/api/ollama_error.h"
#include "server/api/ollama_request.h"
#include "server/number_list.h"
#include "server/routes/embedding_answer.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/turn/chat_turn.h"
#include "server/turn/completion_turn.h"
#include "server/writers/ollama_writer.h"

namespace slipstream {
namespace {

// One of /api/chat and /api/generate.
struct OllamaKind {
  OllamaForm form;
  ApiResult<OllamaRequest> (*read)(Json& body);
};
constexpr OllamaKind kOllamaChat{OllamaForm::kChat, read_ollama_chat};
constexpr OllamaKind kOllamaGenerate{OllamaForm::kGenerate, read_ollama_generate};

ApiResult<void> check_num_ctx(const ServedModel& model, std::int64_t n_context) {
  if (n_context <= model.engine->n_context()) return {};
  return refuse("options.num_ctx",
                format_text("'options.num_ctx' is {}, and this server has {} tokens for the model: "
                            "start it with --ctx {}",
                            n_context, model.engine->n_context(), n_context));
}

// A model that the client wants to be gone is loaded until its idle time is looked at.
std::unique_ptr<PreparedAnswer> nothing_to_say(const ServedModel& model, OllamaForm form,
                                               const OllamaRequest& request) {
  const bool unloads = request.keep_alive && request.keep_alive->count() == 0;
  return std::make_unique<PreparedReply>(
      HttpReply{.body = ollama_done(model.name, form, unloads ? "unload" : "load")});
}

// What is generated without a template: a raw prompt is continued, or a place is filled.
ApiResult<std::unique_ptr<Turn>> begin_plain(ServedModel& model, HttpExchange& exchange,
                                             OllamaRequest& request, const Client& client) {
  CompletionRequest completion{.options = std::move(request.chat.options), .prompts = {}};
  if (request.fill) {
    completion.prompts.emplace_back(std::move(request.fill->prefix));
    completion.suffix = std::move(request.fill->suffix);
  } else {
    completion.prompts.emplace_back(std::move(request.raw_prompt).value_or(std::string()));
  }
  ApiResult<std::vector<std::vector<Token>>> prompts = take_prompts(model, completion);
  if (!prompts) return std::unexpected(prompts.error());
  return begin_completion(model, exchange, completion, *prompts, client);
}

// The checks that need no OllamaRequest.
ApiResult<void> check_ollama(const ServedModel& model, const OllamaKind& kind, const Json& body) {
  if (kind.form == OllamaForm::kGenerate) return check_completion(model);
  const Json* messages = member(body, "messages");
  if (messages == nullptr || messages->empty()) return {};
  return check_chat(model, body);
}

Prepared prepare_ollama(const RouteParts& parts, const OllamaKind& kind, ServedModel& model,
                        HttpExchange& exchange, Json& body, const Client& client) {
  if (const auto checked = check_ollama(model, kind, body); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<OllamaRequest> request = kind.read(body);
  if (!request) return std::unexpected(request.error());
  if (const auto fits = check_num_ctx(model, request->n_context); !fits) {
    return std::unexpected(fits.error());
  }
  if (request->keep_alive) parts.models.keep(model.name, *request->keep_alive);
  if (request->only_loads()) return nothing_to_say(model, kind.form, *request);
  const bool is_plain = request->raw_prompt || request->fill;
  if (!is_plain && !model.chat_template) {
    return refuse("model", "This model has no chat template: ask /api/generate with \"raw\": true");
  }
  const TurnAnswer::Form form(request->chat.options);
  ApiResult<std::unique_ptr<Turn>> turn =
      is_plain ? begin_plain(model, exchange, *request, client)
               : begin_chat(model, exchange, std::move(request->chat), client);
  if (!turn) return std::unexpected(turn.error());
  return std::make_unique<TurnAnswer>(std::move(*turn),
                                      std::make_unique<OllamaWriter>(model.name, kind.form), form);
}

// What only loads a model is answered in one piece.
ApiResult<bool> streams_ollama(const OllamaKind& kind, Json& body) {
  const ApiResult<OllamaRequest> request = kind.read(body);
  if (!request) return std::unexpected(request.error());
  return request->chat.options.streams && !request->only_loads();
}

template <OllamaForm kForm>
std::unique_ptr<TurnWriter> early_ollama_writer(const ServedModel& model) {
  return std::make_unique<OllamaWriter>(model.name, kForm);
}

// Nothing is truncated, whatever "truncate" says: a text that is too long is refused.
Prepared prepare_embed(const RouteParts& parts, ServedModel& model, Json& body,
                       const Client& client) {
  ApiResult<EmbeddingRequest> request = read_embedding_request(body);
  if (!request) return std::unexpected(request.error());
  JsonFields fields(body);
  const auto keep_alive = read_keep_alive(fields);
  if (fields.error()) return std::unexpected(*fields.error());
  if (keep_alive) parts.models.keep(model.name, *keep_alive);
  const auto begun = std::chrono::steady_clock::now();
  return prepare_vectors(model, std::move(*request), client,
                         [begun, name = model.name](const Vectors& vectors, std::size_t n_tokens) {
                           const auto time = std::chrono::steady_clock::now() - begun;
                           std::string lists = "[";
                           for (const std::vector<float>& vector : vectors) {
                             if (lists.size() > 1) lists += ',';
                             lists += number_list(vector);
                           }
                           return format_text(
                               R"({{"model":{},"embeddings":{}],"total_duration":{},)"
                               R"("load_duration":0,"prompt_eval_count":{}}})",
                               dump(name), lists, std::chrono::nanoseconds(time).count(), n_tokens);
                         });
}

// The older route, for one text.
Prepared prepare_one_embedding(ServedModel& model, Json& body, const Client& client) {
  JsonFields fields(body);
  const auto prompt = fields.text("prompt");
  if (!prompt) fields.refuse("prompt", "'prompt' is required");
  if (fields.error()) return std::unexpected(*fields.error());
  return prepare_vectors(model, {.inputs = {prompt.value_or(std::string())}}, client,
                         [](const Vectors& vectors, std::size_t /*n_tokens*/) {
                           return format_text(R"({{"embedding":{}}})",
                                              number_list(vectors.front()));
                         });
}

Route ollama_route(std::string_view path, Prepare prepare, const RouteParts& parts,
                   StreamedAnswers streams = {}) {
  Route route = model_route(path, std::move(prepare), parts, std::move(streams));
  route.refusal = ollama_refusal;
  return route;
}

// Also for models that only read.
Route reading_route(std::string_view path, Prepare prepare, const RouteParts& parts) {
  Route route = any_model_route(path, std::move(prepare), parts);
  route.refusal = ollama_refusal;
  return route;
}

template <const OllamaKind& kKind>
Route generating_route(std::string_view path, const RouteParts& parts) {
  return ollama_route(
      path,
      [&parts](ServedModel& model, HttpExchange& exchange, Json& body, const Client& client) {
        return prepare_ollama(parts, kKind, model, exchange, body, client);
      },
      parts,
      {.is_asked_for = [](Json& body, const Client&) { return streams_ollama(kKind, body); },
       .early_writer = early_ollama_writer<kKind.form>});
}

}  // namespace

void add_ollama_routes(RouteTable& table, const RouteParts& parts) {
  table.add(generating_route<kOllamaChat>("/api/chat", parts));
  table.add(generating_route<kOllamaGenerate>("/api/generate", parts));
  table.add(reading_route(
      "/api/embed",
      [&parts](ServedModel& model, HttpExchange&, Json& body, const Client& client) {
        return prepare_embed(parts, model, body, client);
      },
      parts));
  table.add(reading_route(
      "/api/embeddings",
      [](ServedModel& model, HttpExchange&, Json& body, const Client& client) {
        return prepare_one_embedding(model, body, client);
      },
      parts));
}

}  // namespace slipstream
