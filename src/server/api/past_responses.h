// PastResponses: finds earlier responses that a request refers to by id.
//
// Threads: thread-compatible.
// Errors:  none; null if it does not exist (any more) or belongs to another client.
#pragma once

#include <string_view>

#include "server/json.h"

namespace slipstream {

class PastResponses {
 public:
  PastResponses() = default;
  virtual ~PastResponses() = default;
  PastResponses(const PastResponses&) = delete;
  PastResponses& operator=(const PastResponses&) = delete;

  // The items of the whole conversation, including those of this response.
  [[nodiscard]] virtual Json conversation(std::string_view response_id) = 0;
  // One item of a response.
  [[nodiscard]] virtual Json item(std::string_view item_id) = 0;
};

}  // namespace slipstream
