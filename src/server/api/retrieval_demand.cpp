#include "server/api/retrieval_demand.h"

#include <cstdint>

namespace slipstream {

std::optional<RetrievalDemand> read_retrieval(JsonFields& fields) {
  constexpr std::string_view kName = "retrieval";
  const Json* value = fields.any(kName);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return RetrievalDemand{.is_on = value->get<bool>()};
  const Json* object = fields.object(kName);
  if (object == nullptr) return std::nullopt;
  JsonFields members(*object, std::string(kName));
  RetrievalDemand demand{.chat = members.text("chat").value_or("")};
  const Json* project = members.any("project");
  demand.wants_projects = project == nullptr || *project != false;
  if (demand.wants_projects) demand.project = members.text("project");
  if (const auto n = members.integer("budget", 0, INT32_MAX)) {
    demand.n_tokens_max = static_cast<int>(*n);
  }
  if (const auto& error = members.error()) fields.refuse(error->param, error->message);
  return demand;
}

}  // namespace slipstream
