// SearchResult: a repository that the hub found, from the answer to GET /api/models?search=...
//
// Nothing in it is trusted: a repository whose name is not valid on the hub is left out.
//
// Threads: immutable. Errors: kCorrupt if the answer is not a list.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_name.h"

namespace slipstream::hub {

struct SearchResult {
  ModelName name;  // without a quant
  std::uint64_t n_downloads = 0;
};

[[nodiscard]] Result<std::vector<SearchResult>> parse_search_results(std::string_view json);

}  // namespace slipstream::hub
