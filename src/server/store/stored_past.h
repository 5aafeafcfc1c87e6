// StoredPast: finds earlier responses of one client in the store.
//
// Threads: thread-compatible; used on a worker. Errors: none; what cannot be read is null.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/api/past_responses.h"
#include "server/store/response_store.h"

namespace slipstream {

class StoredPast final : public PastResponses {
 public:
  StoredPast(ResponseStore& store, Salt salt) : store_(store), salt_(salt) {}

  [[nodiscard]] Json conversation(std::string_view response_id) override;
  [[nodiscard]] Json item(std::string_view item_id) override;

 private:
  ResponseStore& store_;
  const Salt salt_;
  // The response of the last item that was found: clients refer to its items one after another.
  std::string last_id_ = {};
  Json last_output_ = {};
  std::size_t n_bytes_read_ = 0;
};

}  // namespace slipstream
