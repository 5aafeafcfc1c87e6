// GET /props, GET /slots and POST /apply-template: llama-server's routes, with its field names.
#include <string>
#include <utility>

#include "base/format.h"
#include "server/api/chat_request.h"
#include "server/http/target.h"
#include "server/json.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/turn/chat_turn.h"

namespace slipstream {
namespace {

using LoadedModel = boost::asio::awaitable<ApiResult<ModelPool::Held>>;

// Returns the model of "?model=", or the first. A look at a model does not count as use: the model
// is not loaded for it, and its idle time goes on.
LoadedModel model_to_show(const RouteParts& parts, const HttpExchange& exchange) {
  const std::string name = query_value(exchange.request().target(), "model");
  for (const ModelPool::Status& model : parts.models.list()) {
    if (!name.empty() && model.name != name) continue;
    if (model.loaded) co_return model.loaded;
    co_return std::unexpected(ApiError{
        .status = 503,
        .message = format_text("'{}' is not loaded now: ask it something, or later", model.name)});
  }
  const ApiResult<ModelPool::Status> other = co_await parts.models.status(name);
  if (!other) co_return std::unexpected(other.error());
  co_return std::unexpected(ApiError{
      .status = 503, .message = format_text("'{}' is not loaded: ask it something first", name)});
}

// The defaults of requests.
Json default_params() {
  const SamplingParams params;
  return {{"temperature", params.temperature},
          {"top_k", params.top_k},
          {"top_p", params.top_p},
          {"min_p", params.min_p},
          {"typical_p", params.typical_p},
          {"repeat_last_n", params.penalty_last_n},
          {"repeat_penalty", params.repeat_penalty},
          {"presence_penalty", params.presence_penalty},
          {"frequency_penalty", params.frequency_penalty},
          {"dry_multiplier", params.dry.multiplier},
          {"dry_base", params.dry.base},
          {"dry_allowed_length", params.dry.allowed_length},
          {"dry_penalty_last_n", params.dry.last_n},
          {"max_tokens", -1},
          {"n_predict", -1},
          {"ignore_eos", false},
          {"stream", false},
          {"timings_per_token", false}};
}

Json template_abilities(const ChatTemplate& chat) {
  const TemplateAbilities& can = chat.abilities();
  return {{"supports_system_role", can.takes_system},
          {"supports_tools", can.takes_tools},
          {"supports_tool_calls", can.takes_calls},
          {"supports_object_arguments", can.takes_calls && !can.wants_arguments_as_text},
          {"supports_typed_content", can.wants_parts},
          {"supports_string_content", !can.wants_parts}};
}

std::string text_of(const Vocabulary& vocabulary, std::optional<Token> token) {
  return token ? vocabulary.piece(*token, true) : std::string();
}

Json props_of(const ServedModel& model, const std::string& build_info) {
  const Vocabulary& vocabulary = model.vocabulary();
  const bool sees = model.engine && model.engine->vision() != nullptr;
  Json props = {
      {"default_generation_settings", {{"params", default_params()}, {"n_ctx", model.n_context()}}},
      {"total_slots", model.engine ? model.engine->n_parallel() : 0},
      {"model_alias", model.name},
      {"model_path", model.file_name},
      {"modalities", {{"vision", sees}, {"video", false}, {"audio", false}}},
      {"endpoint_slots", true},
      {"endpoint_props", false},
      {"endpoint_metrics", true},
      {"chat_template", ""},
      {"bos_token", text_of(vocabulary, vocabulary.bos())},
      {"eos_token", text_of(vocabulary, vocabulary.eos())},
      {"build_info", build_info},
      {"is_sleeping", false}};
  if (model.chat_template) {
    props["chat_template"] = model.chat_template->source();
    props["chat_template_caps"] = template_abilities(*model.chat_template);
  }
  return props;
}

// Shows only sizes, because the content of a request belongs to its client.
Json slots_of(const ServedModel& model) {
  if (!model.engine) return Json::array();  // it only reads
  const Engine& engine = *model.engine;
  const RunnerStats stats = engine.stats();
  Json slots = Json::array();
  for (std::size_t i = 0; std::cmp_less(i, engine.n_parallel()); ++i) {
    const bool is_processing = i < stats.running.size();
    Json slot = {{"id", i},
                 {"n_ctx", engine.n_context()},
                 {"speculative", is_processing && stats.running[i].n_drafted > 0},
                 {"is_processing", is_processing}};
    if (is_processing) {
      const RunningRequest& running = stats.running[i];
      slot["id_task"] = running.id;
      slot["n_prompt_tokens"] = running.n_prompt;
      slot["n_prompt_tokens_processed"] = running.n_prompt_computed;
      slot["n_prompt_tokens_cache"] = running.n_cached;
      slot["next_token"] = Json::array({{{"has_next_token", true},
                                         {"n_remain", running.n_tokens_max - running.n_generated},
                                         {"n_decoded", running.n_generated}}});
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

RouteAnswer answer_props(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<ModelPool::Held> model = co_await model_to_show(parts, exchange);
  if (!model) co_return std::unexpected(model.error());
  (void)co_await exchange.reply({.body = dump(props_of(**model, parts.build_info))});
  co_return ApiResult<void>();
}

RouteAnswer answer_slots(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<ModelPool::Held> model = co_await model_to_show(parts, exchange);
  if (!model) co_return std::unexpected(model.error());
  (void)co_await exchange.reply({.body = dump(slots_of(**model))});
  co_return ApiResult<void>();
}

Prepared prepare_template(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                          const Client& client) {
  if (const auto checked = check_chat(model, body); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<ChatRequest> request = read_chat_request(body);
  if (!request) return std::unexpected(request.error());
  const ApiResult<std::string> prompt = prompt_text(model, std::move(*request), client);
  if (!prompt) return std::unexpected(prompt.error());
  return std::make_unique<PreparedReply>(HttpReply{.body = dump({{"prompt", *prompt}})});
}

}  // namespace

void add_props_routes(RouteTable& table, const RouteParts& parts) {
  namespace http = boost::beast::http;
  table.add({.method = http::verb::get,
             .path = "/props",
             .answer = [&parts](HttpExchange& exchange,
                                const Client&) { return answer_props(parts, exchange); },
             .answers_to_the_end = true});
  table.add({.method = http::verb::get,
             .path = "/slots",
             .answer = [&parts](HttpExchange& exchange,
                                const Client&) { return answer_slots(parts, exchange); },
             .answers_to_the_end = true});
  table.add(model_route("/apply-template", prepare_template, parts));
}

}  // namespace slipstream
