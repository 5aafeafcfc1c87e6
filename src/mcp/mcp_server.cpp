#include "mcp/mcp_server.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "mcp/mcp_limits.h"
#include "mcp/resources.h"

namespace slipstream {
namespace {

constexpr std::string_view kInstructions =
    "Searches the user's source code and documents, in folders that were added to an index, which "
    "is "
    "kept up to date. Ask 'search' with words, names or a question; 'find_symbol' for definitions; "
    "'read_lines' shows more of a file. Answers say whether the index is fresh.";
constexpr int kHour = 3'600'000;                 // ms
constexpr int kResourceNotFoundBefore = -32002;  // until 2025-11-25

// Whether the tools have structured results and titles.
bool has_structure(std::string_view revision) { return revision != "2025-03-26"; }

// May one message be a list of them?
bool has_batches(std::string_view revision) { return revision == "2025-03-26"; }

RpcError no_method(const std::string& method) {
  return {.code = kRpcMethodNotFound,
          .message = format_text("There is no method {}", rpc_quoted(method))};
}

// How long a client may keep a result, and whether others may have it. Null: it may not keep it.
Json keeping(const std::string& method) {
  if (method == "server/discover" || method == "tools/list") {
    return {{"ttlMs", kHour}, {"cacheScope", "public"}};
  }
  // Files change at any time, and are the user's.
  if (method.starts_with("resources/")) return {{"ttlMs", 0}, {"cacheScope", "private"}};
  return {};
}

bool is_method(std::string_view method, std::string_view revision) {
  constexpr auto kMethods = std::to_array<std::string_view>(
      {"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"});
  if (std::ranges::contains(kMethods, method)) return true;
  return method == (revision == kMcpModern ? "server/discover" : "ping");
}

}  // namespace

bool McpWork::is_long() const {
  return std::ranges::any_of(items_, [](const Item& item) {
    return item.message.method == "tools/call" || item.message.method.starts_with("resources/");
  });
}

McpServer::McpServer(std::shared_ptr<Corpus> corpus, std::string version)
    : corpus_(std::move(corpus)), version_(std::move(version)), tools_(tools_for(*corpus_)) {}

Json McpServer::describe_itself(std::string_view revision) const {
  Json info = {{"name", "slipstream"}};
  if (has_structure(revision)) info["title"] = "Slipstream: the user's folders";
  info["version"] = version_;
  return info;
}

Json McpServer::initialized(std::string_view revision) const {
  return {{"protocolVersion", revision},
          {"capabilities", {{"tools", Json::object()}, {"resources", Json::object()}}},
          {"serverInfo", describe_itself(revision)},
          {"instructions", kInstructions}};
}

McpWork::Item McpServer::read_one(Json& json, const McpHeaders* headers,
                                  McpSession* session) const {
  McpWork::Item item{.message = read_rpc(json)};
  const RpcMessage& message = item.message;
  const auto refuse = [&item](int http_status, const RpcError& error) {
    item.http_status = http_status;
    item.reply = rpc_reply(item.message.id, error);
  };
  if (message.problem && message.problem->code != kRpcInvalidParams) {
    refuse(400, *message.problem);
    return item;
  }
  if (message.kind == RpcMessage::Kind::kResponse) return item;  // nothing was asked of the client
  if (message.method == "initialize" && message.kind == RpcMessage::Kind::kRequest) {
    const std::optional<McpRefusal> refusal = refuse_initialize(message, headers);
    if (refusal) {
      refuse(refusal->http_status, refusal->error);
      return item;
    }
    item.revision = agreed_revision(message.params);
    if (session != nullptr) session->revision = item.revision;
    item.reply = rpc_reply(message.id, initialized(item.revision));
    return item;
  }
  const auto revision = revision_of(message, headers, session);
  if (!revision) {
    // A notification gets no answer, but over HTTP a status.
    refuse(revision.error().http_status, revision.error().error);
    if (message.kind == RpcMessage::Kind::kNotification && headers == nullptr) item.reply = Json();
    return item;
  }
  item.revision = *revision;
  if (message.kind == RpcMessage::Kind::kNotification) return item;
  if (!is_method(message.method, *revision)) {
    refuse(*revision == kMcpModern ? 404 : 200, no_method(message.method));
  } else if (message.problem) {
    refuse(200, *message.problem);
  }
  return item;
}

McpWork McpServer::read(std::string_view text, const McpHeaders* headers,
                        McpSession* session) const {
  McpWork work;
  const auto refuse = [&work](const RpcError& error) {
    work.items_.push_back(
        {.message = {}, .revision = {}, .reply = rpc_reply(Json(), error), .http_status = 400});
  };
  RpcResult<Json> json = parse_rpc(text);
  if (!json) {
    refuse(json.error());
    return work;
  }
  if (!json->is_array()) {
    work.items_.push_back(read_one(*json, headers, session));
    return work;
  }
  // Clients of the revision with batches send no header.
  std::string_view agreed = kMcpWithInitialize.back();
  if (headers == nullptr) {
    agreed = session->revision;
  } else if (headers->revision) {
    agreed = *headers->revision;
  }
  if (!has_batches(agreed)) {
    refuse({.code = kRpcInvalidRequest,
            .message = "this revision has no batches: send one message at a time"});
    return work;
  }
  if (json->empty() || json->size() > kMcpLimits.batch_max) {
    refuse({.code = kRpcInvalidRequest,
            .message = format_text("a batch has 1 to {} messages", kMcpLimits.batch_max)});
    return work;
  }
  work.is_batch_ = true;
  for (Json& one : *json) {
    McpWork::Item item = read_one(one, headers, session);
    if (item.message.method == "initialize") {
      item.reply = rpc_reply(
          item.message.id,
          RpcError{.code = kRpcInvalidRequest, .message = "initialize must not be in a batch"});
    }
    work.items_.push_back(std::move(item));
  }
  return work;
}

// What the revision wants on every result.
Json McpServer::marked(Json result, const RpcMessage& message, std::string_view revision) const {
  if (revision != kMcpModern) return result;
  result["resultType"] = "complete";
  result["_meta"]["io.modelcontextprotocol/serverInfo"] = describe_itself(revision);
  if (const Json keep = keeping(message.method); !keep.is_null()) result.update(keep);
  return result;
}

McpReply McpServer::answer(const McpWork& work, std::shared_ptr<const ProjectRights> rights) {
  CorpusView corpus(*corpus_, std::move(rights));
  Json replies = Json::array();
  int http_status = 200;
  for (const McpWork::Item& item : work.items_) {
    Json reply = item.reply;
    if (reply.is_null() && !item.message.method.empty() &&
        item.message.kind == RpcMessage::Kind::kRequest) {
      RpcResult<Json> result = Json();
      try {
        result = run(corpus, item.message, item.revision);
      } catch (const std::exception& error) {  // memory
        log::error("mcp.call", {{"method", item.message.method}, {"thrown", error.what()}});
        result = std::unexpected(RpcError{.code = kRpcInternalError, .message = "out of memory"});
      }
      reply = result ? rpc_reply(item.message.id,
                                 marked(std::move(*result), item.message, item.revision))
                     : rpc_reply(item.message.id, result.error());
    }
    if (!reply.is_null()) replies.push_back(std::move(reply));
    http_status = item.http_status;
  }
  if (replies.empty()) return {.http_status = http_status == 200 ? 202 : http_status};
  if (work.is_batch_) return {.http_status = 200, .text = rpc_text(replies)};
  return {.http_status = http_status, .text = rpc_text(replies.front())};
}

Json McpServer::listed_tools(std::string_view revision) const {
  Json listed = Json::array();
  for (const Tool& tool : tools_) {
    Json one = {{"name", tool.name}};
    if (has_structure(revision)) one["title"] = tool.title;
    one["description"] = tool.description;
    one["inputSchema"] = tool.schema;
    one["annotations"] = {{"title", tool.title},
                          {"readOnlyHint", tool.only_reads},
                          {"destructiveHint", false},
                          {"idempotentHint", true},
                          {"openWorldHint", false}};
    listed.push_back(std::move(one));
  }
  return {{"tools", std::move(listed)}};
}

RpcResult<Json> McpServer::call_tool(CorpusView& corpus, const Json& params,
                                     std::string_view revision) {
  const Json* name = rpc_member(params, "name");
  if (name == nullptr || !name->is_string()) {
    return std::unexpected(RpcError{.code = kRpcInvalidParams, .message = "'name' must be a text"});
  }
  const auto tool = std::ranges::find(tools_, name->get_ref<const std::string&>(), &Tool::name);
  if (tool == tools_.end()) {
    return std::unexpected(
        RpcError{.code = kRpcInvalidParams,
                 .message = "Unknown tool: " + rpc_quoted(name->get_ref<const std::string&>())});
  }
  const Json* given = rpc_member(params, "arguments");
  const Json arguments = given == nullptr ? Json::object() : *given;
  // A model can do something about its arguments: so these are results, too.
  const auto failed = [](std::string_view message) {
    return Json{{"content", Json::array({{{"type", "text"}, {"text", message}}})},
                {"isError", true}};
  };
  if (const auto wrong = why_wrong(tool->schema, arguments)) return failed(*wrong);
  Result<ToolAnswer> answer = tool->call(corpus, arguments);
  if (!answer) return failed(answer.error().message);
  Json result = {{"content", Json::array({{{"type", "text"}, {"text", std::move(answer->text)}}})}};
  if (has_structure(revision)) result["structuredContent"] = std::move(answer->json);
  result["isError"] = false;
  return result;
}

RpcResult<Json> McpServer::run(CorpusView& corpus, const RpcMessage& message,
                               std::string_view revision) {
  const std::string& method = message.method;
  const Json& params = message.params;
  if (method == "tools/call") return call_tool(corpus, params, revision);
  if (method == "tools/list") return listed_tools(revision);
  if (method == "resources/list") return list_resources(corpus, rpc_member(params, "cursor"));
  if (method == "resources/templates/list") return list_resource_templates(corpus);
  if (method == "resources/read") {
    const Json* uri = rpc_member(params, "uri");
    if (uri == nullptr || !uri->is_string()) {
      return std::unexpected(
          RpcError{.code = kRpcInvalidParams, .message = "'uri' must be a text"});
    }
    return read_resource(corpus, uri->get<std::string>(),
                         revision == kMcpModern ? kRpcInvalidParams : kResourceNotFoundBefore);
  }
  if (method == "server/discover") {
    Json found = initialized(revision);
    found.erase("protocolVersion");
    found.erase("serverInfo");  // it is in _meta
    found["supportedVersions"] = Json::array({kMcpModern});
    return found;
  }
  return Json::object();  // ping
}

}  // namespace slipstream
