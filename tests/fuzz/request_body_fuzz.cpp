// Whatever a client sends as a body, to whichever route: it is read, or refused with a message that
// is itself JSON. Input: the body.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "server/api/embedding_request.h"

namespace {

using slipstream::ApiResult;
using slipstream::Json;

template <typename Request>
void check(const ApiResult<Request>& request) {
  if (request) return;
  SLIP_CHECK(request.error().status == 400, "a refusal is a 400");
  SLIP_CHECK(!request.error().message.empty(), "a refusal says nothing");
  SLIP_CHECK(Json::accept(slipstream::to_json(request.error())), "a refusal that is no JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  const ApiResult<Json> body =
      slipstream::parse_json({reinterpret_cast<const char*>(data), n_bytes});
  check(body);
  if (!body) return 0;
  check(slipstream::read_chat_request(*body));
  check(slipstream::read_completion_request(*body));
  check(slipstream::read_embedding_request(*body));
  return 0;
}
