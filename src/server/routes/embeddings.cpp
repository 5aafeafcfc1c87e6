// POST /v1/embeddings.
#include <span>
#include <utility>

#include "base/format.h"
#include "server/api/embedding_request.h"
#include "server/base64.h"
#include "server/json.h"
#include "server/routes/embedding_answer.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/turn/generation.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

// Returns the tokens of every input, or the reason why one cannot have an embedding.
ApiResult<std::vector<std::vector<Token>>> read_inputs(const ServedModel& model,
                                                       EmbeddingRequest request) {
  const Embedder& embedder = model.embeddings->embedder();
  if (request.n_dimensions && *request.n_dimensions != embedder.n_dimensions()) {
    return refuse("dimensions", format_text("'dimensions' must be {}: this model's embeddings "
                                            "cannot be shortened",
                                            embedder.n_dimensions()));
  }
  std::vector<std::vector<Token>> inputs;
  for (Prompt& input : request.inputs) {
    ApiResult<std::vector<Token>> tokens =
        to_tokens(model.engine->vocabulary(), "input", std::move(input), embedder.n_tokens_max());
    if (!tokens) return std::unexpected(tokens.error());
    if (std::cmp_greater(tokens->size(), embedder.n_tokens_max())) {
      return std::unexpected(ApiError{
          .message = format_text("'input[{}]' has {} tokens, and embeddings are made of at most {}",
                                 inputs.size(), tokens->size(), embedder.n_tokens_max()),
          .param = "input",
          .code = "context_length_exceeded"});
    }
    inputs.push_back(std::move(*tokens));
  }
  return inputs;
}

class Embeddings final : public PreparedAnswer {
 public:
  Embeddings(ServedModel& model, std::vector<std::vector<Token>> inputs, VectorsText text)
      : model_(model), inputs_(std::move(inputs)), text_(std::move(text)) {}

  asio::awaitable<ApiResult<void>> send(HttpExchange& exchange, WorkerPool& workers) override {
    exchange.drop_body();
    for (std::vector<Token>& input : inputs_) {
      if (!exchange.is_client_there()) co_return ApiResult<void>();
      n_tokens_ += input.size();
      Result<std::vector<float>> vector = co_await model_.embeddings->embed(std::move(input));
      if (!vector) {
        ApiError error = to_api_error(vector.error());
        error.param = "input";
        co_return std::unexpected(std::move(error));
      }
      vectors_.push_back(std::move(*vector));
    }
    ApiResult<std::string> body = co_await workers.go_on(
        exchange, [this]() -> ApiResult<std::string> { return text_(vectors_, n_tokens_); });
    if (!body) co_return std::unexpected(body.error());
    (void)co_await exchange.reply({.body = std::move(*body)});
    co_return ApiResult<void>();
  }

 private:
  ServedModel& model_;
  std::vector<std::vector<Token>> inputs_;
  const VectorsText text_;
  Vectors vectors_;
  std::size_t n_tokens_ = 0;
};

std::string openai_vectors(const std::string& model, bool as_base64, const Vectors& vectors,
                           std::size_t n_tokens) {
  Json data = Json::array();
  for (const std::vector<float>& vector : vectors) {
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", as_base64 ? Json(to_base64(std::as_bytes(std::span(vector))))
                                            : Json(vector)}});
  }
  return dump({{"object", "list"},
               {"data", std::move(data)},
               {"model", model},
               {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}});
}

Prepared prepare_embeddings(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                            const Client& client) {
  ApiResult<EmbeddingRequest> request = read_embedding_request(body);
  if (!request) return std::unexpected(request.error());
  const bool as_base64 = request->as_base64;
  return prepare_vectors(model, std::move(*request), client,
                         [&model, as_base64](const Vectors& vectors, std::size_t n_tokens) {
                           return openai_vectors(model.name, as_base64, vectors, n_tokens);
                         });
}

}  // namespace

Prepared prepare_vectors(ServedModel& model, EmbeddingRequest request, const Client& client,
                         VectorsText text) {
  if (!model.embeddings) {
    return refuse("model", "This server makes no embeddings: start it with --embeddings");
  }
  ApiResult<std::vector<std::vector<Token>>> inputs = read_inputs(model, std::move(request));
  if (!inputs) return std::unexpected(inputs.error());
  for (const std::vector<Token>& input : *inputs) client.charge_prompt(input.size());
  return std::make_unique<Embeddings>(model, std::move(*inputs), std::move(text));
}

void add_embedding_routes(RouteTable& table, const RouteParts& parts) {
  table.add(model_route("/v1/embeddings", prepare_embeddings, parts));
}

}  // namespace slipstream
