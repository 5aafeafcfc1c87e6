#include "base/check.h"

#include <cstdio>
#include <cstdlib>

#include "base/format.h"

namespace slipstream {

void check_failed(std::string_view condition, std::string_view message,
                  std::source_location where) {
  const std::string line = format_text("{}:{}: bug: {} (check failed: {})\n", where.file_name(),
                                       where.line(), message, condition);
  std::fputs(line.c_str(), stderr);
  std::abort();
}

}  // namespace slipstream
