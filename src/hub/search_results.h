// SearchResult: a repository that the hub found, out of the answer of GET /api/models?search=...
//
// Everything in it is the server's word: a repository whose name is none of the hub's is left out.
//
// Threads: immutable. Errors: kCorrupt where the answer is no list.
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
