#include "base/format.h"

namespace slipstream {

std::string format_arguments(std::string_view format, std::format_args arguments) {
  return std::vformat(format, arguments);
}

}  // namespace slipstream
