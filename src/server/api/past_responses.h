// PastResponses: what a client was answered before and may refer to, by id.
//
// Threads: as of who makes one. Errors: none; what is gone, or was another client's, is null.
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

  // The items of the whole conversation, with those of this answer.
  [[nodiscard]] virtual Json conversation(std::string_view response_id) = 0;
  // One item of an answer.
  [[nodiscard]] virtual Json item(std::string_view item_id) = 0;
};

}  // namespace slipstream
