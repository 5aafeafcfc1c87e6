// POST /v1/embeddings.
#include <span>
#include <utility>

#include "base/format.h"
#include "engine/embedding/unit_vector.h"
#include "server/api/embedding_request.h"
#include "server/base64.h"
#include "server/json.h"
#include "server/number_list.h"
#include "server/routes/embedding_answer.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/turn/generation.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

ApiError too_many_tokens_to_embed(std::size_t n_max) {
  return {
      .message = format_text("'input' has more than {} tokens: send it in several requests", n_max),
      .param = "input",
      .code = "context_length_exceeded"};
}

// Returns the tokens of every input, or the reason why one cannot have an embedding.
ApiResult<std::vector<std::vector<Token>>> read_inputs(const ServedReader& served,
                                                       EmbeddingRequest request) {
  const TextReader& reader = served.reader();
  if (request.n_dimensions && *request.n_dimensions > reader.n_columns()) {
    return refuse("dimensions", format_text("'dimensions' must be at most {}: this model's vectors "
                                            "have no more",
                                            reader.n_columns()));
  }
  std::vector<std::vector<Token>> inputs;
  std::size_t n_tokens = 0;
  for (Prompt& input : request.inputs) {
    ApiResult<std::vector<Token>> tokens =
        to_tokens(served.vocabulary(), "input", std::move(input), reader.n_tokens_max());
    if (!tokens) return std::unexpected(tokens.error());
    if (std::cmp_greater(tokens->size(), reader.n_tokens_max())) {
      return std::unexpected(ApiError{
          .message = format_text("'input[{}]' has {} tokens, and embeddings are made of at most {}",
                                 inputs.size(), tokens->size(), reader.n_tokens_max()),
          .param = "input",
          .code = "context_length_exceeded"});
    }
    if (const Result<void> checked = reader.check(*tokens); !checked) {
      return refuse("input",
                    format_text("'input[{}]': {}", inputs.size(), checked.error().message));
    }
    n_tokens += tokens->size();
    if (n_tokens > kReadingLimits.tokens_max) {
      return std::unexpected(too_many_tokens_to_embed(kReadingLimits.tokens_max));
    }
    inputs.push_back(std::move(*tokens));
  }
  return inputs;
}

class Embeddings final : public PreparedAnswer {
 public:
  Embeddings(ServedModel& model, const Client& client, std::vector<std::vector<Token>> inputs,
             std::optional<std::int64_t> n_dimensions, VectorsText text)
      : model_(model),
        client_(client),
        inputs_(std::move(inputs)),
        n_dimensions_(n_dimensions),
        text_(std::move(text)) {}

  asio::awaitable<ApiResult<void>> send(HttpExchange& exchange, WorkerPool& workers) override {
    exchange.drop_body();
    std::size_t n_tokens = 0;
    for (const std::vector<Token>& input : inputs_) n_tokens += input.size();
    Result<ReadingWorker::Answer> answer =
        co_await model_.reader->worker().read(exchange, client_, std::move(inputs_));
    if (!exchange.is_client_there()) co_return ApiResult<void>();
    if (!answer) co_return std::unexpected(to_api_error(answer.error()));
    ApiResult<std::string> body = co_await workers.go_on(exchange, [&]() -> ApiResult<std::string> {
      for (std::vector<float>& vector : answer->rows) finish(vector);
      return text_(answer->rows, n_tokens);
    });
    if (!body) co_return std::unexpected(body.error());
    (void)co_await exchange.reply({.body = std::move(*body)});
    co_return ApiResult<void>();
  }

 private:
  void finish(std::vector<float>& vector) const {
    if (n_dimensions_) vector.resize(static_cast<std::size_t>(*n_dimensions_));
    scale_to_length_one(vector);
  }

  ServedModel& model_;
  const Client& client_;
  std::vector<std::vector<Token>> inputs_;
  const std::optional<std::int64_t> n_dimensions_;
  const VectorsText text_;
};

std::string openai_vectors(const std::string& model, bool as_base64, const Vectors& vectors,
                           std::size_t n_tokens) {
  std::string text = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::span<const float> vector(vectors[i]);
    text += format_text(R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
    text += as_base64 ? '"' + to_base64(std::as_bytes(vector)) + '"' : number_list(vector);
    text += '}';
  }
  return text + format_text(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                            dump(model), n_tokens, n_tokens);
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
  if (!model.reader) {
    return refuse("model", format_text("'{}' makes no embeddings: start the server with "
                                       "--embeddings, or name a model that makes them",
                                       model.name));
  }
  if (model.reader->pairs() != nullptr) {
    return refuse("model", format_text("'{}' ranks texts and makes no embeddings of them: ask it "
                                       "/v1/rerank, or name another model",
                                       model.name));
  }
  const auto n_dimensions = request.n_dimensions;
  ApiResult<std::vector<std::vector<Token>>> inputs =
      read_inputs(*model.reader, std::move(request));
  if (!inputs) return std::unexpected(inputs.error());
  for (const std::vector<Token>& input : *inputs) client.charge_prompt(input.size());
  return std::make_unique<Embeddings>(model, client, std::move(*inputs), n_dimensions,
                                      std::move(text));
}

void add_embedding_routes(RouteTable& table, const RouteParts& parts) {
  table.add(any_model_route("/v1/embeddings", prepare_embeddings, parts));
}

}  // namespace slipstream
