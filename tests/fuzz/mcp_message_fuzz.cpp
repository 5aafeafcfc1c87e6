// Whatever a client of MCP sends, it is a message or a refusal that can be written, and its arguments are checked before a tool
// sees them. The first line is the headers' name and revision, the rest is the message.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "harness.h"
#include "mcp/json_rpc.h"
#include "mcp/resources.h"
#include "mcp/revision.h"
#include "mcp/tools/tool.h"

namespace {

using slipstream::Json;

void check_reply(const Json& reply) {
  const std::string text = slipstream::rpc_text(reply);
  SLIP_CHECK(!text.contains('\n'), "a reply in several lines");
  SLIP_CHECK(!Json::parse(text, nullptr, false).is_discarded(), "a reply that is no JSON");
}

void check_arguments(const Json& arguments) {
  for (const slipstream::Tool& tool : {slipstream::search_tool(), slipstream::read_lines_tool(),
                                       slipstream::find_related_tool()}) {
    if (slipstream::why_wrong(tool.schema, arguments)) continue;
    for (const auto& [name, property] : tool.schema["properties"].items()) {
      if (property["type"] == "string") {
        (void)slipstream::text_of(arguments, name);
      } else {
        SLIP_CHECK(slipstream::integer_of(arguments, name, 1) >= 1, "a number below its minimum");
      }
    }
  }
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string header(input.substr(0, line));
  const std::string_view text = input.substr(std::min(line + 1, input.size()));

  (void)slipstream::header_value(header);
  if (const auto path = slipstream::path_of_uri(header)) {
    SLIP_CHECK(path->starts_with('/') && !path->contains('\0'), "not a whole path");
    SLIP_CHECK(slipstream::path_of_uri(slipstream::file_uri(*path)) == path, "a path that changes");
  }
  auto json = slipstream::parse_rpc(text);
  if (!json) {
    check_reply(slipstream::rpc_reply(Json(), json.error()));
    return 0;
  }
  const slipstream::RpcMessage message = slipstream::read_rpc(*json);
  SLIP_CHECK(message.params.is_object(), "params that are no object");
  if (message.problem) check_reply(slipstream::rpc_reply(message.id, *message.problem));
  const slipstream::McpHeaders headers{
      .revision = header, .method = message.method, .name = header};
  const slipstream::McpSession session;
  for (const auto& revision : {slipstream::revision_of(message, nullptr, &session),
                               slipstream::revision_of(message, &headers, nullptr)}) {
    if (!revision) check_reply(slipstream::rpc_reply(message.id, revision.error().error));
  }
  check_arguments(message.params);
  return 0;
}
