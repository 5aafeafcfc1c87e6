#include "server/routes/embeddings.h"

#include <span>
#include <utility>

#include "base/format.h"
#include "server/api/embedding_request.h"
#include "server/base64.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

// The model's tokens of every input, or why it cannot have an embedding.
ApiResult<std::vector<std::vector<Token>>> read_inputs(const ServedModel& model,
                                                       const EmbeddingRequest& request) {
  const Embedder& embedder = model.embeddings->embedder();
  if (request.n_dimensions && *request.n_dimensions != embedder.n_dimensions()) {
    return refuse("dimensions", format_text("'dimensions' must be {}: this model's embeddings "
                                            "cannot be shortened",
                                            embedder.n_dimensions()));
  }
  std::vector<std::vector<Token>> inputs;
  for (const Prompt& input : request.inputs) {
    ApiResult<std::vector<Token>> tokens =
        to_tokens(model.engine->vocabulary(), "input", input, embedder.n_tokens_max());
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

}  // namespace

asio::awaitable<ApiResult<void>> answer_embeddings(ServedModel& model, HttpExchange& exchange,
                                                   const Json& body, const Client& /*client*/) {
  if (!model.embeddings) {
    co_return refuse("model", "This server makes no embeddings: start it with --embeddings");
  }
  const ApiResult<EmbeddingRequest> request = read_embedding_request(body);
  if (!request) co_return std::unexpected(request.error());
  ApiResult<std::vector<std::vector<Token>>> inputs = read_inputs(model, *request);
  if (!inputs) co_return std::unexpected(inputs.error());
  Json data = Json::array();
  std::size_t n_tokens = 0;
  for (std::vector<Token>& input : *inputs) {
    if (!exchange.is_client_there()) co_return ApiResult<void>();
    n_tokens += input.size();
    const Result<std::vector<float>> vector = co_await model.embeddings->embed(std::move(input));
    if (!vector) {
      ApiError error = to_api_error(vector.error());
      error.param = "input";
      co_return std::unexpected(std::move(error));
    }
    data.push_back(
        {{"object", "embedding"},
         {"index", data.size()},
         {"embedding", request->as_base64 ? Json(to_base64(std::as_bytes(std::span(*vector))))
                                          : Json(*vector)}});
  }
  (void)co_await exchange.reply(
      {.body = dump({{"object", "list"},
                     {"data", std::move(data)},
                     {"model", model.name},
                     {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}})});
  co_return ApiResult<void>();
}

}  // namespace slipstream
