// offered_index(): the index of folders, as far as `slipstream serve` offers it to clients of MCP and
// to chats, and the files that are attached to chats.
//
// Threads: on start. Errors: those of the index; kInvalidArgument for flags that do not fit together.
#pragma once

#include <memory>

#include "base/result.h"
#include "cli/serve/serve.h"
#include "mcp/mcp_server.h"
#include "server/attachments/attachment_store.h"
#include "server/recall/retrieval.h"

namespace slipstream::serve {

// Each null if it is not offered.
struct OfferedIndex {
  std::unique_ptr<McpServer> mcp = {};
  std::unique_ptr<AttachmentStore> attachments = {};  // before what uses it
  std::unique_ptr<Retrieval> retrieval = {};
};

[[nodiscard]] Result<OfferedIndex> offered_index(const Options& options);

}  // namespace slipstream::serve
