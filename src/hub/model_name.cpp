#include "hub/model_name.h"

#include <algorithm>

#include "base/format.h"

namespace slipstream::hub {
namespace {

constexpr std::size_t kNamePartBytesMax = 96;  // the hub's own limit
constexpr std::size_t kQuantBytesMax = 200;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_part(std::string_view part) {
  const auto is_edge = [](char c) { return c == '.' || c == '-'; };
  // "--" separates the parts in the names of the cache's directories.
  return !part.empty() && part.size() <= kNamePartBytesMax &&
         std::ranges::all_of(part, is_name_character) && !is_edge(part.front()) &&
         !is_edge(part.back()) && !part.contains("--") && !part.contains("..");
}

}  // namespace

Result<ModelName> parse_model_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view id = text.substr(0, colon);
  const std::size_t slash = id.find('/');
  if (slash != std::string_view::npos) {
    ModelName model{
        .org = std::string(id.substr(0, slash)),
        .repo = std::string(id.substr(slash + 1)),
        .quant = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1))};
    const bool has_good_quant = colon == std::string_view::npos ||
                                (!model.quant.empty() && model.quant.size() <= kQuantBytesMax &&
                                 std::ranges::all_of(model.quant, is_name_character));
    if (is_part(model.org) && is_part(model.repo) && has_good_quant) return model;
  }
  return fail(Code::kInvalidArgument,
              format_text("'{}' is not the name of a model: it is written org/repo or "
                          "org/repo:quant, as in Qwen/Qwen3-0.6B-GGUF:Q8_0",
                          text));
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace slipstream::hub
