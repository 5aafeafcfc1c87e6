// GET /api/tags, /api/ps and /api/version, POST /api/show and /api/pull: models, as Ollama's clients
// ask for them; and refusals in its form for what cannot be had.
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/format.h"
#include "engine/forecast/gguf_model.h"
#include "server/api/json_fields.h"
#include "server/api/ollama_error.h"
#include "server/http/http_limits.h"
#include "server/json.h"
#include "server/keys_file.h"
#include "server/routes/routes.h"
#include "server/writers/ollama_writer.h"

namespace slipstream {
namespace {

// Of Ollama's API, as it is spoken here: clients refuse servers that are too old for them.
constexpr std::string_view kOllamaVersion = "0.12.6";
constexpr std::size_t kNameBytesMax = 1024;

std::string time_of(std::time_t seconds) {
  return ollama_time(std::chrono::system_clock::from_time_t(seconds));
}

// Clients show its first letters. It is of the name: files here are not known by their hash.
std::string digest_of(const std::string& name) {
  std::string hex;
  for (const unsigned char byte : digest_of_key(name)) hex += format_text("{:02x}", byte);
  return hex;
}

// "8.2B", "4.5M"
std::string short_count(double n) {
  return n >= 1e9 ? format_text("{:.1f}B", n / 1e9) : format_text("{:.1f}M", n / 1e6);
}

Json details(const std::string& family, const std::string& n_parameters, const std::string& quant) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", family},
          {"families", Json::array({family})},
          {"parameter_size", n_parameters},
          {"quantization_level", quant}};
}

std::string meta_text(const llama_model* model, const char* key) {
  std::array<char, 128> text{};
  return llama_model_meta_val_str(model, key, text.data(), text.size()) < 0 ? "" : text.data();
}

Json listed(const ModelPool::Status& status, std::time_t started) {
  Json json = {{"name", status.name},
               {"model", status.name},
               {"modified_at", time_of(started)},
               {"size", status.n_bytes},
               {"digest", digest_of(status.name)},
               {"details", details("", "", status.quant)}};
  if (status.loaded) {
    const llama_model* model = status.loaded->model();
    const auto n = static_cast<double>(llama_model_n_params(model));
    json["size"] = llama_model_size(model);
    json["details"] =
        details(meta_text(model, "general.architecture"), short_count(n), status.quant);
  }
  return json;
}

RouteAnswer answer_tags(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<std::vector<ModelPool::Status>> all = co_await parts.models.list_all();
  if (!all) co_return std::unexpected(all.error());
  Json models = Json::array();
  for (const ModelPool::Status& model : *all) models.push_back(listed(model, parts.started));
  (void)co_await exchange.reply({.body = dump({{"models", std::move(models)}})});
  co_return ApiResult<void>();
}

RouteAnswer answer_ps(const RouteParts& parts, HttpExchange& exchange) {
  constexpr std::chrono::hours kLong{24 * 365};  // when a model leaves is not known
  Json models = Json::array();
  for (const ModelPool::Status& model : parts.models.list()) {
    if (!model.loaded) continue;
    Json json = listed(model, parts.started);
    json["expires_at"] = ollama_time(std::chrono::system_clock::now() + kLong);
    json["size_vram"] = 0;
    json["context_length"] = model.loaded->n_context();
    models.push_back(std::move(json));
  }
  (void)co_await exchange.reply({.body = dump({{"models", std::move(models)}})});
  co_return ApiResult<void>();
}

RouteAnswer answer_version(HttpExchange& exchange) {
  (void)co_await exchange.reply({.body = dump({{"version", kOllamaVersion}})});
  co_return ApiResult<void>();
}

// The type that most bytes of the weights have.
std::string main_type(const GgufModel& model) {
  std::map<ggml_type, std::uint64_t> bytes;
  for (const GgufTensor& tensor : model.tensors()) bytes[tensor.type] += tensor.n_bytes;
  if (bytes.empty()) return "";
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& one) { return one.second; });
  std::string name = ggml_type_name(most->first);
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

double count_parameters(const GgufModel& model) {
  double n = 0;
  for (const GgufTensor& tensor : model.tensors()) {
    double n_elements = 1;
    for (const std::int64_t extent : tensor.ne) n_elements *= static_cast<double>(extent);
    n += n_elements;
  }
  return n;
}

Json capabilities(const ModelPool::Status& status, const std::string& source) {
  Json can = Json::array();
  const bool embeds =
      status.loaded && status.loaded->reader && !status.loaded->reader->reader().ranks();
  const bool writes = !status.loaded || status.loaded->engine;
  if (writes) can.push_back("completion");
  if (embeds) can.push_back("embedding");
  if (!writes) return can;
  const bool fills = status.loaded && status.loaded->vocabulary().fill_tokens();
  if (fills) can.push_back("insert");
  const Result<ChatTemplate> chat = ChatTemplate::create(source, "", "");
  if (source.empty() || !chat) return can;
  if (chat->abilities().takes_tools) can.push_back("tools");
  const bool thinks = chat->format().reasoning != ReasoningFamily::kNone;
  if (thinks) can.push_back("thinking");
  return can;
}

// Reads the model's file, whether it is loaded or not.
ApiResult<std::string> describe_for_ollama(const ModelPool::Status& status, std::time_t started) {
  const Result<GgufModel> file = GgufModel::open(status.path);
  if (!file) return std::unexpected(to_api_error(file.error()));
  const std::string& family = file->architecture();
  const double n_parameters = count_parameters(*file);
  Json info = {{"general.architecture", family},
               {"general.parameter_count", static_cast<std::int64_t>(n_parameters)}};
  for (const char* key : {"context_length", "embedding_length", "block_count",
                          "attention.head_count", "attention.head_count_kv"}) {
    if (const auto n = file->integer(format_text("%s.{}", key))) {
      info[format_text("{}.{}", family, key)] = *n;
    }
  }
  std::string parameters;
  if (status.loaded) {  // what the server has room for counts, not what the model was trained for
    info[family + ".context_length"] = status.loaded->n_context();
    parameters = format_text("num_ctx {}", status.loaded->n_context());
  }
  const std::string source = file->text("tokenizer.chat_template").value_or("");
  return dump({{"modelfile", ""},
               {"parameters", parameters},
               {"template", source},
               {"details", details(family, short_count(n_parameters), main_type(*file))},
               {"model_info", std::move(info)},
               {"capabilities", capabilities(status, source)},
               {"modified_at", time_of(started)}});
}

// The body has a few short fields. It is parsed on this thread, because a longer one is refused.
boost::asio::awaitable<ApiResult<Json>> read_small_body(HttpExchange& exchange) {
  if (const auto problem = co_await exchange.read_body(kHttpLimits.http_free_body_bytes)) {
    co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
  }
  co_return parse_json(exchange.request().body());
}

// "model", which older clients call "name".
ApiResult<std::string> read_name(JsonFields& fields) {
  std::string name = fields.text("model").value_or("");
  if (name.empty()) name = fields.text("name").value_or("");
  if (name.empty()) fields.refuse("model", "'model' is required");
  if (name.size() > kNameBytesMax) {
    fields.refuse("model", format_text("No model has a name of {} bytes", name.size()));
  }
  if (fields.error()) return std::unexpected(*fields.error());
  return name;
}

RouteAnswer answer_show(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<Json> body = co_await read_small_body(exchange);
  if (!body) co_return std::unexpected(body.error());
  JsonFields fields(*body);
  const ApiResult<std::string> name = read_name(fields);
  if (!name) co_return std::unexpected(name.error());
  const ApiResult<ModelPool::Status> status = co_await parts.models.status(*name);
  if (!status) co_return std::unexpected(status.error());
  ApiResult<std::string> text = co_await parts.workers.run(
      exchange, [&] { return describe_for_ollama(*status, parts.started); });
  if (!text) co_return std::unexpected(text.error());
  (void)co_await exchange.reply({.body = std::move(*text)});
  co_return ApiResult<void>();
}

std::string json_line(const Json& json) { return dump(json) + "\n"; }

std::string begin_ollama_pull(const std::string& /*name*/) {
  return json_line({{"status", "pulling manifest"}});
}

std::string tell_ollama(const PullNews& news, const std::string& name) {
  if (news.error) return ollama_error(*news.error) + "\n";
  if (news.is_done) return json_line({{"status", "success"}});
  return json_line({{"status", "pulling " + name},
                    {"digest", name},
                    {"total", news.n_bytes_all},
                    {"completed", news.n_bytes}});
}

// "hf.co/org/repo:quant", and without the host.
std::string hub_name(std::string name) {
  for (const std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (name.starts_with(host)) name.erase(0, host.size());
  }
  if (name.ends_with(":latest")) name.resize(name.size() - std::string_view(":latest").size());
  return name;
}

RouteAnswer answer_ollama_pull(const RouteParts& parts, HttpExchange& exchange) {
  if (parts.library == nullptr) {
    co_return std::unexpected(ApiError{
        .status = 404, .message = "This server pulls no models: it was started without --hub"});
  }
  const ApiResult<Json> body = co_await read_small_body(exchange);
  if (!body) co_return std::unexpected(body.error());
  JsonFields fields(*body);
  const bool streams = fields.boolean("stream").value_or(true);
  const ApiResult<std::string> name = read_name(fields);
  if (!name) co_return std::unexpected(name.error());
  HttpReply head = OllamaWriter("", OllamaForm::kChat).head();
  PullForm form{
      .streams = streams, .head = std::move(head), .begin = begin_ollama_pull, .tell = tell_ollama};
  std::string asked = hub_name(*name);
  co_return co_await parts.library->pull_as(std::move(form), exchange, std::move(asked));
}

RouteAnswer refuse_ollama(HttpExchange& exchange, std::string_view why) {
  co_return std::unexpected(ApiError{
      .status = 404, .message = format_text("There is no {} here: {}", exchange.path(), why)});
}

}  // namespace

void add_ollama_model_routes(RouteTable& table, const RouteParts& parts) {
  using boost::beast::http::verb;
  const auto add = [&](verb method, std::string_view path, auto answer) {
    table.add({.method = method,
               .path = path,
               .answer = [&parts, answer](HttpExchange& exchange,
                                          const Client&) { return answer(parts, exchange); },
               .refusal = ollama_refusal,
               .answers_to_the_end = method == verb::get});
  };
  const auto add_refusal = [&](verb method, std::string_view path, std::string_view why) {
    table.add({.method = method,
               .path = path,
               .answer = [why](HttpExchange& exchange,
                               const Client&) { return refuse_ollama(exchange, why); },
               .refusal = ollama_refusal});
  };
  add(verb::get, "/api/tags", answer_tags);
  add(verb::get, "/api/ps", answer_ps);
  add(verb::get, "/api/version",
      [](const RouteParts&, HttpExchange& exchange) { return answer_version(exchange); });
  add(verb::post, "/api/show", answer_show);
  add(verb::post, "/api/pull", answer_ollama_pull);
  constexpr std::string_view kByHand =
      "models are GGUF files of the hub, kept by 'slipstream pull' "
      "and 'slipstream rm'";
  add_refusal(verb::post, "/api/create", kByHand);
  add_refusal(verb::post, "/api/copy", kByHand);
  add_refusal(verb::post, "/api/push", kByHand);
  add_refusal(verb::delete_, "/api/delete", kByHand);
}

}  // namespace slipstream
