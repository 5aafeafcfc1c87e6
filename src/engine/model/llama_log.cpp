#include "engine/model/llama_log.h"

#include <llama.h>
#include <mtmd-helper.h>

#include <mutex>
#include <utility>

#include "base/format.h"
#include "base/log.h"

namespace slipstream {
namespace {

thread_local std::string last_complaint;
thread_local std::string first_error;

// Called from C: no exception may escape.
void take_line(ggml_log_level level, const char* text, void* /*user_data*/) noexcept {
  try {
    std::string_view line = text == nullptr ? "" : text;
    line = line.substr(0, line.find_last_not_of(" \n") + 1);
    if (line.empty()) return;
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) last_complaint = line;
    if (level == GGML_LOG_LEVEL_ERROR && first_error.empty()) first_error = line;
    log::debug("llama", {{"text", line}});
  } catch (...) {  // out of memory: the line is lost
    return;
  }
}

}  // namespace

void redirect_llama_log() {
  static std::once_flag once;
  std::call_once(once, [] { llama_log_set(take_line, nullptr); });
}

void redirect_projector_log() { mtmd_helper_log_set(take_line, nullptr); }

std::string take_llama_complaint() {
  first_error.clear();
  return std::exchange(last_complaint, {});
}

std::string first_llama_error() { return first_error; }

std::string with_llama_complaint(std::string_view what) {
  const std::string complaint = take_llama_complaint();
  return complaint.empty() ? std::string(what) : format_text("{}: {}", what, complaint);
}

}  // namespace slipstream
