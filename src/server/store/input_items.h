// One page of what a stored response was given, as GET /v1/responses/ID/input_items has it.
//
// Threads: immutable. Errors: 400 that names the query's value.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/store/response_store.h"

namespace slipstream {

// target: of the request, with "limit", "order" and "after" behind its '?'.
[[nodiscard]] ApiResult<std::string> input_items_page(const std::string& response_id,
                                                      const StoredResponse& stored,
                                                      std::string_view target);

}  // namespace slipstream
