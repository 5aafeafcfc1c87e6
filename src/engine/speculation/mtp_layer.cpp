#include "engine/speculation/mtp_layer.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"
#include "engine/forecast/gguf_model.h"
#include "engine/speculation/mtp_calls.h"

namespace slipstream {
namespace {

// Those that the tests run. libllama 0.7 has others, of which most have recurrent state or a chain of
// such layers.
constexpr std::array<std::string_view, 2> kTested = {"glm4moe", "deepseek2"};

}  // namespace

Result<void> check_mtp_layer(const std::filesystem::path& model) {
  const Result<GgufModel> opened = GgufModel::open(model);
  if (!opened) return std::unexpected(opened.error());
  const auto cannot = [&model](std::string_view why) {
    return fail(Code::kUnsupported,
                format_text("{}: no drafts by MTP: {}", model.filename().string(), why));
  };
  const std::int64_t n_layers = opened->integer("%s.nextn_predict_layers").value_or(0);
  if (n_layers <= 0) return cannot("the model has no layer for it");
  if (!std::ranges::contains(kTested, opened->architecture())) {
    return cannot(format_text("not tested with the architecture {}", opened->architecture()));
  }
  if (n_layers > 1) return cannot(format_text("of its {} layers one could be used", n_layers));
  const std::int64_t layer = opened->integer("%s.block_count").value_or(0) - 1;
  if (opened->find_tensor(format_text("blk.{}.nextn.eh_proj.weight", layer)) == nullptr) {
    return cannot("the file was written without the weights of that layer");
  }
  if (const Result<MtpCalls> calls = find_mtp_calls(); !calls) return cannot(calls.error().message);
  return {};
}

}  // namespace slipstream
