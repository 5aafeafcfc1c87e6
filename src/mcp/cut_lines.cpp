#include "mcp/cut_lines.h"

#include <algorithm>

#include "mcp/mcp_limits.h"
#include "mcp/tools/tool.h"

namespace slipstream {

Lines cut_lines(std::string_view text, int first, int last) {
  Lines lines{.text = {}, .first = first, .last = first - 1};
  const int n_lines_max = static_cast<int>(kMcpLimits.lines_max);
  if (last - first >= n_lines_max) {
    last = first + n_lines_max - 1;
    lines.is_cut = true;
  }
  std::size_t begin = text.size();
  std::size_t end = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
    ++lines.n_all;
    if (lines.n_all == first) begin = at;
    if (lines.n_all >= first && lines.n_all <= last) {
      end = next;
      lines.last = lines.n_all;
    }
    at = next;
  }
  if (lines.last < first) return lines;
  lines.text = text.substr(begin, end - begin);
  if (lines.text.size() <= kMcpLimits.lines_bytes_max) {
    lines.is_cut &= lines.last < lines.n_all;
    return lines;
  }
  lines.text = start_of(lines.text, kMcpLimits.lines_bytes_max);
  lines.is_cut = true;
  lines.last = first + static_cast<int>(std::ranges::count(lines.text, '\n'));
  return lines;
}

}  // namespace slipstream
