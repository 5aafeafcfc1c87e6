// POST /tokenize and /detokenize, with vLLM's field names.
#include <algorithm>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/api/json_fields.h"
#include "server/json.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/turn/generation.h"

namespace slipstream {
namespace {

Prepared prepare_tokenize(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                          const Client& /*client*/) {
  JsonFields fields(body);
  const std::optional<std::string> text = fields.text("prompt");
  const bool add_special = fields.boolean("add_special_tokens").value_or(true);
  if (!text) fields.refuse("prompt", "'prompt' is required");
  if (fields.error()) return std::unexpected(*fields.error());
  const Vocabulary& vocabulary = model.vocabulary();
  const std::string prompt = text.value_or("");
  if (const auto fits = check_length(vocabulary, "prompt", prompt, model.n_context()); !fits) {
    return std::unexpected(fits.error());
  }
  const Result<std::vector<Token>> tokens = vocabulary.tokenize(prompt, add_special, true);
  if (!tokens) return refuse("prompt", tokens.error().message);
  return std::make_unique<PreparedReply>(HttpReply{
      .body = dump(
          {{"tokens", *tokens}, {"count", tokens->size()}, {"max_model_len", model.n_context()}})});
}

Prepared prepare_detokenize(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                            const Client& /*client*/) {
  JsonFields fields(body);
  const Json* tokens = fields.array("tokens");
  if (fields.error()) return std::unexpected(*fields.error());
  if (tokens == nullptr) return refuse("tokens", "'tokens' is required");
  const Vocabulary& vocabulary = model.vocabulary();
  std::string text;
  for (const Json& token : *tokens) {
    const auto id = token.is_number_integer() ? token.get<std::int64_t>() : -1;
    if (id < 0 || id >= vocabulary.n_tokens()) {
      return refuse("tokens", "'tokens' must be token ids of the model");
    }
    text += vocabulary.piece(static_cast<Token>(id), true);
    if (text.size() > kTextLimits.text_bytes_max) {
      return refuse("tokens", format_text("the text is longer than the {} bytes allowed",
                                          kTextLimits.text_bytes_max));
    }
  }
  return std::make_unique<PreparedReply>(HttpReply{.body = dump({{"prompt", text}})});
}

}  // namespace

void add_token_routes(RouteTable& table, const RouteParts& parts) {
  table.add(any_model_route("/tokenize", prepare_tokenize, parts));
  table.add(any_model_route("/detokenize", prepare_detokenize, parts));
}

}  // namespace slipstream
