// POST /v1/rerank and its other names: how well documents answer a query.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "server/api/rerank_request.h"
#include "server/json.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/turn/generation.h"
#include "server/writers/openai_writer.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

using Pairs = std::vector<std::vector<Token>>;

ApiError too_many_tokens(std::size_t n_max) {
  return {.message = format_text("the query and all documents have more than {} tokens together: "
                                 "send fewer documents in a request",
                                 n_max),
          .param = "documents",
          .code = "context_length_exceeded"};
}

ApiError too_long(const std::string& param, std::size_t n_tokens, int n_max) {
  return {
      .message = format_text("'query' and '{}' have {} tokens together, and this model reads at "
                             "most {}: split the document, or shorten the query",
                             param, n_tokens, n_max),
      .param = param,
      .code = "context_length_exceeded"};
}

// What the model reads of each document, whole: nothing is cut to fit.
ApiResult<Pairs> read_pairs(const ServedReader& reader, const RerankRequest& request) {
  const RankingPairs& pairs = *reader.pairs();
  const int n_max = reader.reader().n_tokens_max();
  // Each document is read with the query: one that fits nowhere must not be split so many times.
  if (const auto fits = check_length(reader.vocabulary(), "query", request.query, n_max); !fits) {
    return std::unexpected(fits.error());
  }
  const auto alone = pairs.whole(request.query, "");
  if (!alone) return refuse("query", alone.error().message);
  if (std::cmp_greater(alone->size(), n_max)) {
    return std::unexpected(too_long("query", alone->size(), n_max));
  }
  const std::size_t n_tokens_max = kReadingLimits.tokens_max;
  if (alone->size() * request.documents.size() > n_tokens_max) {
    return std::unexpected(too_many_tokens(n_tokens_max));
  }
  Pairs read;
  std::size_t n_tokens = 0;
  for (const std::string& document : request.documents) {
    const std::string param =
        format_text("{}[{}]", request.has_texts ? "texts" : "documents", read.size());
    if (const auto fits = check_length(reader.vocabulary(), param, document, n_max); !fits) {
      return std::unexpected(fits.error());
    }
    Result<std::vector<Token>> pair = pairs.whole(request.query, document);
    if (!pair) return refuse(param, pair.error().message);
    if (std::cmp_greater(pair->size(), n_max)) {
      return std::unexpected(too_long(param, pair->size(), n_max));
    }
    n_tokens += pair->size();
    if (n_tokens > n_tokens_max) return std::unexpected(too_many_tokens(n_tokens_max));
    read.push_back(std::move(*pair));
  }
  return read;
}

Json result_of(const RerankRequest& request, std::size_t idx, float rank) {
  if (request.has_texts) {
    Json result = {{"index", idx}, {"score", rank}};
    if (request.returns_documents) result["text"] = request.documents[idx];
    return result;
  }
  Json result = {{"index", idx}, {"relevance_score", rank}};
  if (request.returns_documents) result["document"] = {{"text", request.documents[idx]}};
  return result;
}

// Jina's fields, and beside them Cohere's "id" and "meta".
std::string rerank_answer(const std::string& model, const RerankRequest& request,
                          const std::vector<ReadingWorker::Row>& ranks, std::size_t n_tokens) {
  const auto rank = [&ranks](std::size_t idx) { return ranks[idx].front(); };
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), rank);
  if (request.n_top > 0) order.resize(std::min(order.size(), request.n_top));
  Json results = Json::array();
  for (const std::size_t idx : order) results.push_back(result_of(request, idx, rank(idx)));
  if (request.has_texts) return dump(results);
  return dump({{"id", new_id("rerank")},
               {"object", "list"},
               {"model", model},
               {"results", std::move(results)},
               {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}},
               {"meta",
                {{"api_version", {{"version", "2"}}},
                 {"billed_units", {{"search_units", 1}}},
                 {"tokens", {{"input_tokens", n_tokens}, {"output_tokens", 0}}}}}});
}

class Rerank final : public PreparedAnswer {
 public:
  Rerank(ServedModel& model, const Client& client, RerankRequest request, Pairs pairs)
      : model_(model), client_(client), request_(std::move(request)), pairs_(std::move(pairs)) {}

  asio::awaitable<ApiResult<void>> send(HttpExchange& exchange, WorkerPool& workers) override {
    // Documents that are returned take as much memory as the body, whose room they keep.
    if (!request_.returns_documents) exchange.drop_body();
    std::size_t n_tokens = 0;
    for (const std::vector<Token>& pair : pairs_) n_tokens += pair.size();
    const Result<ReadingWorker::Answer> answer =
        co_await model_.reader->worker().read(exchange, client_, std::move(pairs_));
    if (!exchange.is_client_there()) co_return ApiResult<void>();
    if (!answer) co_return std::unexpected(to_api_error(answer.error()));
    ApiResult<std::string> body = co_await workers.go_on(exchange, [&]() -> ApiResult<std::string> {
      return rerank_answer(model_.name, request_, answer->rows, n_tokens);
    });
    if (!body) co_return std::unexpected(body.error());
    (void)co_await exchange.reply({.body = std::move(*body)});
    co_return ApiResult<void>();
  }

 private:
  ServedModel& model_;
  const Client& client_;
  const RerankRequest request_;
  Pairs pairs_;
};

Prepared prepare_rerank(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                        const Client& client) {
  ApiResult<RerankRequest> request = read_rerank_request(body);
  if (!request) return std::unexpected(request.error());
  if (!model.reader || model.reader->pairs() == nullptr) {
    return refuse("model", format_text("'{}' does not rank texts: that takes a reranker, a model "
                                       "whose GGUF file has a head for it (pooling type rank)",
                                       model.name));
  }
  ApiResult<Pairs> pairs = read_pairs(*model.reader, *request);
  if (!pairs) return std::unexpected(pairs.error());
  for (const std::vector<Token>& pair : *pairs) client.charge_prompt(pair.size());
  if (!request->returns_documents) request->documents.clear();
  return std::make_unique<Rerank>(model, client, std::move(*request), std::move(*pairs));
}

}  // namespace

void add_rerank_routes(RouteTable& table, const RouteParts& parts) {
  // The last ones are llama-server's.
  for (const std::string_view path :
       {"/v1/rerank", "/v2/rerank", "/rerank", "/v1/reranking", "/reranking"}) {
    table.add(any_model_route(path, prepare_rerank, parts));
  }
}

}  // namespace slipstream
