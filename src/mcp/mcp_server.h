// McpServer: answers messages of the Model Context Protocol, whatever brings them.
//
//   const McpWork work = server.read(text, nullptr, &session);   // in the order of the messages
//   const McpReply reply = server.answer(work);                  // in any order, on any thread
//
// It speaks the revision 2026-07-28, where each message stands for itself, and those with
// `initialize` from 2025-03-26 on (revision.h), to the same client if need be. It sends nothing of
// its own accord: no notifications, no requests.
//
// Threads: thread-safe; a session is of one thread.
// Errors:  are replies.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/corpus.h"
#include "mcp/json_rpc.h"
#include "mcp/revision.h"
#include "mcp/tools/tool.h"

namespace slipstream {

struct McpReply {
  int http_status = 200;
  std::string text = {};  // empty: there is none
};

// What messages ask for.
class McpWork {
 public:
  // Whether it may take longer than a moment.
  [[nodiscard]] bool is_long() const;

 private:
  friend class McpServer;
  struct Item {
    RpcMessage message = {};
    std::string_view revision = {};
    Json reply = {};        // ready already; null: it has to be made, or there is none
    int http_status = 200;  // of the reply
  };
  std::vector<Item> items_;
  bool is_batch_ = false;
};

class McpServer {
 public:
  // version: of the program.
  McpServer(std::shared_ptr<Corpus> corpus, std::string version);

  // headers: null over stdio. session: null over HTTP.
  [[nodiscard]] McpWork read(std::string_view text, const McpHeaders* headers,
                             McpSession* session) const;
  // rights: of the client; null: it sees all projects.
  [[nodiscard]] McpReply answer(const McpWork& work,
                                std::shared_ptr<const ProjectRights> rights = {});
  // Ends waits.
  void stop() { corpus_->stop(); }

 private:
  [[nodiscard]] McpWork::Item read_one(Json& json, const McpHeaders* headers,
                                       McpSession* session) const;
  [[nodiscard]] Json describe_itself(std::string_view revision) const;
  [[nodiscard]] Json initialized(std::string_view revision) const;
  [[nodiscard]] Json listed_tools(std::string_view revision) const;
  [[nodiscard]] RpcResult<Json> run(CorpusView& corpus, const RpcMessage& message,
                                    std::string_view revision);
  [[nodiscard]] RpcResult<Json> call_tool(CorpusView& corpus, const Json& params,
                                          std::string_view revision);
  [[nodiscard]] Json marked(Json result, const RpcMessage& message,
                            std::string_view revision) const;

  const std::shared_ptr<Corpus> corpus_;
  const std::string version_;
  const std::vector<Tool> tools_;
};

}  // namespace slipstream
