// Files of a corpus as resources: file:///home/ann/project/src/main.c.
//
// Threads: thread-safe.
// Errors:  RpcError: a URI of which there is no resource, a cursor that is none.
#pragma once

#include <string>
#include <string_view>

#include "mcp/corpus.h"
#include "mcp/json_rpc.h"

namespace slipstream {

// cursor: from the page before; null: the first page.
[[nodiscard]] RpcResult<Json> list_resources(CorpusView& corpus, const Json* cursor);
[[nodiscard]] RpcResult<Json> list_resource_templates(CorpusView& corpus);
// not_found: the code of its error, which differs by revision.
[[nodiscard]] RpcResult<Json> read_resource(CorpusView& corpus, const std::string& uri,
                                            int not_found);

[[nodiscard]] std::string file_uri(std::string_view path);
// The path of such a URI. nullopt: it is no file of this machine.
[[nodiscard]] std::optional<std::string> path_of_uri(std::string_view uri);

}  // namespace slipstream
