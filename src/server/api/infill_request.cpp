#include "server/api/infill_request.h"

#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::size_t kChunksMax = 4096;
constexpr int kInfillAnswersMax = 64;

void read_extra(JsonFields& fields, FillIn& fill) {
  constexpr std::string_view kName = "input_extra";
  const Json* extra = fields.array(kName);
  if (extra == nullptr) return;
  if (extra->size() > kChunksMax) {
    return fields.refuse(kName, format_text("'{}' must have at most {} texts", kName, kChunksMax));
  }
  for (std::size_t i = 0; i < extra->size(); ++i) {
    const std::string path = format_text("{}[{}]", kName, i);
    if (!(*extra)[i].is_object()) {
      return fields.refuse(path, format_text("'{}' must be an object with a text", path));
    }
    JsonFields chunk((*extra)[i], path);
    std::optional<std::string> text = chunk.text("text");
    std::string filename = chunk.text("filename").value_or("tmp");
    if (!text) chunk.refuse("text", format_text("'{}.text' is required", path));
    if (chunk.error()) return fields.refuse(chunk.error()->param, chunk.error()->message);
    fill.extra.push_back(
        {.filename = std::move(filename), .text = std::move(text).value_or(std::string())});
  }
}

}  // namespace

ApiResult<InfillRequest> read_infill_request(Json& body) {
  JsonFields fields(body);
  InfillRequest request;
  const Json* n_predict = fields.any("n_predict");
  if (n_predict != nullptr && *n_predict == 0) {
    request.only_reads = true;
    body["n_predict"] = 1;
  }
  request.options = read_generation_options(fields);
  if (const auto n = fields.integer("n_cmpl", 1, kInfillAnswersMax)) {
    request.options.n = static_cast<int>(*n);
  }
  if (request.only_reads) request.options.streams = false;
  request.options.may_shorten = true;
  request.fill.prefix = fields.text("input_prefix").value_or("");
  request.fill.line = fields.text("prompt").value_or("");
  request.fill.suffix = fields.text("input_suffix").value_or("");
  read_extra(fields, request.fill);
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
