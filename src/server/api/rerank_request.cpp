#include "server/api/rerank_request.h"

#include <cstdint>
#include <utility>

#include "base/format.h"
#include "server/reading/reading_limits.h"

namespace slipstream {
namespace {

// A document is a text, or an object that has one, as Cohere's and Jina's may be.
const std::string* text_of_document(const Json& document) {
  const Json* text = &document;
  if (document.is_object()) {
    const auto found = document.find("text");
    if (found == document.end()) return nullptr;
    text = &*found;
  }
  return text->get_ptr<const std::string*>();
}

}  // namespace

ApiResult<RerankRequest> read_rerank_request(const Json& body) {
  JsonFields fields(body);
  RerankRequest request;
  const std::string query = fields.text("query").value_or("");
  if (query.empty()) fields.refuse("query", "'query' must be a text that is not empty");
  const bool has_documents = fields.any("documents") != nullptr;
  request.has_texts = !has_documents && fields.any("texts") != nullptr;
  const char* name = request.has_texts ? "texts" : "documents";
  const Json* documents = fields.array(name);
  if (documents == nullptr || documents->empty() || documents->size() > kReadingLimits.texts_max) {
    fields.refuse(name, format_text("'{}' must be an array of 1 to {} texts", name,
                                    kReadingLimits.texts_max));
  }
  const auto n_top = fields.integer("top_n", 1, INT64_MAX);
  request.n_top = static_cast<std::size_t>(n_top.value_or(0));
  const char* returned = request.has_texts ? "return_text" : "return_documents";
  request.returns_documents = fields.boolean(returned).value_or(false);
  if (fields.error()) return std::unexpected(*fields.error());
  request.query = query;
  for (const Json& document : *documents) {
    const std::string* text = text_of_document(document);
    if (text == nullptr) {
      return refuse(name, format_text("'{}[{}]' must be a text, or an object with one as 'text'",
                                      name, request.documents.size()));
    }
    request.documents.push_back(*text);
  }
  return request;
}

}  // namespace slipstream
