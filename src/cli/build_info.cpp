#include "cli/build_info.h"

#include <ggml.h>
#include <llama.h>

#include "base/format.h"
#include "cli/version.h"

namespace slipstream {

std::string build_info() {
  return format_text("slipstream {} (llama.cpp {}, ggml {})", kVersion, llama_version(),
                     ggml_version());
}

}  // namespace slipstream
