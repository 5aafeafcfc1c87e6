#include "server/api/embedding_request.h"

#include "server/reading/reading_limits.h"

namespace slipstream {
ApiResult<EmbeddingRequest> read_embedding_request(const Json& body) {
  JsonFields fields(body);
  EmbeddingRequest request{.inputs = read_prompts(fields, "input", kReadingLimits.texts_max)};
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fields.refuse("encoding_format", "'encoding_format' must be float or base64");
  }
  request.as_base64 = format == "base64";
  request.n_dimensions = fields.integer("dimensions", 1, INT32_MAX);
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
