// How places are shown to a model, in words and as JSON.
#include "base/format.h"
#include "mcp/mcp_limits.h"
#include "mcp/tools/tool.h"

namespace slipstream {
namespace {

std::string why_found(const Found& place, std::string_view terms_are) {
  std::string why = place.defines_name ? "defines it" : "";
  if (!place.terms.empty()) {
    why += format_text("{}{} ", why.empty() ? "" : "; ", terms_are);
    for (std::size_t i = 0; i < place.terms.size(); ++i)
      why += (i == 0 ? "" : ", ") + place.terms[i];
  }
  if (place.is_converted) why += "; lines are those of the text made of the document";
  if (place.is_changed) why += "; the file has changed since";
  return why;
}

}  // namespace

ToolAnswer show_places(std::span<const Found> places, std::string_view terms_are,
                       const Freshness& freshness) {
  ToolAnswer answer;
  Json shown = Json::array();
  for (const Found& place : places) {
    const std::string_view text = start_of(place.text, kMcpLimits.place_bytes_max);
    const bool is_cut = text.size() < place.text.size();
    const std::string why = why_found(place, terms_are);
    answer.text += format_text("{}/{}:{}-{} ({})\n{}{}\n", place.root, place.path, place.first_line,
                               place.last_line, why, text,
                               is_cut                 ? "\n[cut: read_lines shows the rest]\n"
                               : text.ends_with('\n') ? ""
                                                      : "\n");
    shown.push_back({{"project", place.root},
                     {"path", place.path},
                     {"first_line", place.first_line},
                     {"last_line", place.last_line},
                     {"why", why},
                     {"is_changed", place.is_changed},
                     {"is_cut", is_cut},
                     {"text", text}});
  }
  answer.text += freshness.is_fresh
                     ? "The index is fresh."
                     : "The index is not fresh: " + freshness.note + " What is new may be missing.";
  answer.json = {{"places", std::move(shown)},
                 {"index", {{"is_fresh", freshness.is_fresh}, {"note", freshness.note}}}};
  return answer;
}

}  // namespace slipstream
