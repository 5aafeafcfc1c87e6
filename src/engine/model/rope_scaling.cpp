#include "engine/model/rope_scaling.h"

#include <cmath>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

llama_rope_scaling_type type_of(const RopeScaling& rope) {
  if (rope.type.empty()) return LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
  if (rope.type == "none") return LLAMA_ROPE_SCALING_TYPE_NONE;
  if (rope.type == "linear") return LLAMA_ROPE_SCALING_TYPE_LINEAR;
  SLIP_CHECK(rope.type == "yarn", "a kind of rope scaling that no flag has");
  return LLAMA_ROPE_SCALING_TYPE_YARN;
}

}  // namespace

void apply(const RopeScaling& rope, llama_context_params& params) {
  params.rope_scaling_type = type_of(rope);
  params.rope_freq_base = rope.freq_base;
  params.rope_freq_scale = rope.freq_scale;
  params.yarn_orig_ctx = static_cast<std::uint32_t>(rope.yarn_orig_ctx);
  params.yarn_ext_factor = rope.yarn_ext_factor;
  params.yarn_attn_factor = rope.yarn_attn_factor;
  params.yarn_beta_fast = rope.yarn_beta_fast;
  params.yarn_beta_slow = rope.yarn_beta_slow;
}

std::string to_text(const RopeScaling& rope) {
  std::string text = rope.type;
  const auto add = [&](std::string_view what, auto value, auto own) {
    if (value != own) text += format_text("{}{} {}", text.empty() ? "" : " ", what, value);
  };
  add("base", rope.freq_base, 0.0F);
  add("scale", rope.freq_scale, 0.0F);
  add("original", rope.yarn_orig_ctx, std::int64_t{0});
  add("extrapolation", rope.yarn_ext_factor, -1.0F);
  add("attention", rope.yarn_attn_factor, -1.0F);
  add("fast", rope.yarn_beta_fast, -1.0F);
  add("slow", rope.yarn_beta_slow, -1.0F);
  return text;
}

std::int64_t scaled_context(const RopeScaling& rope, std::int64_t n_trained,
                            std::int64_t n_original) {
  if (rope.type == "none") return n_original > 0 ? n_original : n_trained;
  if (rope.freq_scale == 0) return n_trained;
  std::int64_t n_unscaled = n_original > 0 ? n_original : n_trained;
  if (rope.yarn_orig_ctx > 0) n_unscaled = rope.yarn_orig_ctx;
  return std::llround(static_cast<double>(n_unscaled) / static_cast<double>(rope.freq_scale));
}

}  // namespace slipstream
