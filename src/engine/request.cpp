#include "engine/request.h"

namespace slipstream {

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kFailed: return "error";
  }
  return "error";
}

}  // namespace slipstream
