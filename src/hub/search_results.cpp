#include "hub/search_results.h"

#include <nlohmann/json.hpp>

namespace slipstream::hub {

Result<std::vector<SearchResult>> parse_search_results(std::string_view json) {
  const nlohmann::json answer = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_array()) {
    return fail(Code::kCorrupt,
                "the hub's answer to a search is not a list of models: is HF_ENDPOINT right?");
  }
  std::vector<SearchResult> results;
  for (const nlohmann::json& model : answer) {
    if (!model.is_object() || !model.contains("id") || !model["id"].is_string()) continue;
    Result<ModelName> name = parse_model_name(model["id"].get<std::string>());
    if (!name || !name->quant.empty()) continue;
    const auto downloads = model.find("downloads");
    const bool has_downloads = downloads != model.end() && downloads->is_number_unsigned();
    results.push_back({.name = std::move(*name),
                       .n_downloads = has_downloads ? downloads->get<std::uint64_t>() : 0});
  }
  return results;
}

}  // namespace slipstream::hub
