#include "server/writers/annotations.h"

#include <string>
#include <string_view>

#include "base/format.h"
#include "mcp/resources.h"

namespace slipstream {
namespace {

// Of an attached file the address on this server.
std::string address_of(const RecallSource& source) {
  constexpr std::string_view kScheme = "file://";
  if (source.chat.empty()) return file_uri(source.project + "/" + source.path);
  return file_uri(format_text("/slipstream/attachments/{}/{}", source.chat, source.path))
      .substr(kScheme.size());
}

Json fields_of(const Citation& citation) {
  const RecallSource& source = citation.source;
  return {
      {"url", format_text("{}#L{}-L{}", address_of(source), source.first_line, source.last_line)},
      {"title", format_text("{}:{}-{}", source.path, source.first_line, source.last_line)},
      {"start_index", citation.start},
      {"end_index", citation.end}};
}

}  // namespace

Json chat_annotations(std::span<const Citation> citations) {
  Json all = Json::array();
  for (const Citation& citation : citations) {
    all.push_back({{"type", "url_citation"}, {"url_citation", fields_of(citation)}});
  }
  return all;
}

Json response_annotations(std::span<const Citation> citations) {
  Json all = Json::array();
  for (const Citation& citation : citations) {
    Json one = {{"type", "url_citation"}};
    one.update(fields_of(citation));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace slipstream
