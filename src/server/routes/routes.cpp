#include "server/routes/routes.h"

namespace slipstream {

void add_routes(RouteTable& table, const RouteParts& parts) {
  add_attachment_routes(table, parts);
  add_chat_routes(table, parts);
  add_completion_routes(table, parts);
  add_embedding_routes(table, parts);
  add_infill_routes(table, parts);
  add_library_routes(table, parts);
  add_mcp_routes(table, parts);
  add_messages_routes(table, parts);
  add_model_routes(table, parts);
  add_ollama_model_routes(table, parts);
  add_ollama_routes(table, parts);
  add_props_routes(table, parts);
  add_rerank_routes(table, parts);
  add_response_routes(table, parts);
  add_status_routes(table, parts);
  add_token_routes(table, parts);
}

}  // namespace slipstream
