#include "cli/serve/offered_index.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/index/index.h"
#include "cli/version.h"

namespace slipstream::serve {
namespace {

constexpr std::string_view kAll = "all";

// The folders that clients and chats see; none: all of the index.
std::vector<std::string> seen_folders(const Options& options) {
  std::vector<std::string> folders = options.mcp_folders;
  const bool is_only = !options.offers_mcp || !folders.empty();
  if (is_only && !options.retrieve.empty() && options.retrieve != kAll) {
    folders.push_back(options.retrieve);
  }
  return folders;
}

struct OfferedFolders {
  std::shared_ptr<Corpus> corpus;  // of chats and of MCP
  std::optional<std::string> usual_project = {};
};

Result<OfferedFolders> offered_folders(const Options& options) {
  const std::string path = index::index_path(options.index);
  OfferedFolders offered;
  if (options.retrieve == kAll) {
    offered.usual_project = "";
  } else if (!options.retrieve.empty()) {
    Result<Database> database = open_index(path);
    if (!database) return std::unexpected(database.error());
    Result<std::string> root = root_in_index(*database, options.retrieve);
    if (!root) return std::unexpected(root.error());
    offered.usual_project = std::move(*root);
  }
  Result<std::unique_ptr<Corpus>> opened =
      Corpus::open({.index_path = path,
                    .folders = seen_folders(options),
                    .clients_may_add = options.mcp_clients_may_add,
                    .n_threads = 1});  // models need the others
  if (!opened) return std::unexpected(opened.error());
  offered.corpus = std::move(*opened);
  return offered;
}

}  // namespace

Result<OfferedIndex> offered_index(const Options& options) {
  if (!options.offers_mcp && (!options.mcp_folders.empty() || options.mcp_clients_may_add)) {
    return fail(Code::kInvalidArgument,
                "--mcp-project and --mcp-allow-add are for --mcp: give it, too");
  }
  OfferedIndex offered;
  if (!options.attachments_dir.empty()) {
    Result<std::unique_ptr<AttachmentStore>> store =
        AttachmentStore::open({.folder = options.attachments_dir,
                               .bytes_max = options.attachments_bytes,
                               .idle_max = std::chrono::days(options.attachments_days)});
    if (!store) return std::unexpected(store.error());
    offered.attachments = std::move(*store);
  }
  const bool has_folders = options.offers_mcp || !options.retrieve.empty();
  if (!has_folders && !offered.attachments) return offered;
  RetrievalOptions retrieval{.corpus = nullptr,
                             .attachments = offered.attachments.get(),
                             .n_tokens_max = options.n_retrieved_tokens_max};
  if (has_folders) {
    Result<OfferedFolders> folders = offered_folders(options);
    if (!folders) return std::unexpected(folders.error());
    retrieval.corpus = std::move(folders->corpus);
    retrieval.usual_project = std::move(folders->usual_project);
    if (options.offers_mcp) {
      offered.mcp = std::make_unique<McpServer>(retrieval.corpus, kVersion);
    }
  }
  offered.retrieval = std::make_unique<Retrieval>(std::move(retrieval));
  return offered;
}

}  // namespace slipstream::serve
