// TemplateLimits: how large a chat template may be, and what rendering it may cost.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct TemplateLimits {
  // Limits for a model's chat template and for rendering it (server/template/chat_template.h). The
  // longest of 68 public templates has 17 KB. A conversation of 1,000 messages takes 200,000 steps
  // with most templates, but millions with those that look at all messages for each message.
  // template_steps_max steps take 0.2 to 1.4 s.
  std::size_t template_source_bytes_max = std::size_t{256} << 10;
  std::size_t template_steps_max = std::size_t{1} << 25;
  std::size_t template_bytes_max = std::size_t{128} << 20;
  std::size_t template_nesting_max = 100;
};

inline constexpr TemplateLimits kTemplateLimits{};

}  // namespace slipstream
