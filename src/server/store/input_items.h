// input_items_page(): the answer to GET /v1/responses/ID/input_items.
//
// Threads: immutable. Errors: 400 that names the query parameter.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/store/response_store.h"

namespace slipstream {

// target: the request's target, whose query may have "limit", "order" and "after".
[[nodiscard]] ApiResult<std::string> input_items_page(const std::string& response_id,
                                                      const StoredResponse& stored,
                                                      std::string_view target);

}  // namespace slipstream
