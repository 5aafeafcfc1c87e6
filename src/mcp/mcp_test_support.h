// For tests: an McpServer over a folder of files.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "mcp/mcp_server.h"
#include "retrieval/index_test_support.h"

namespace slipstream {

class McpTest : public IndexTest {
 protected:
  // A server that has read all that was written.
  void serve(CorpusOptions options = {}) {
    options.index_path = index_path();
    options.n_threads = 1;
    auto corpus = Corpus::open(options);
    ASSERT_TRUE(corpus) << corpus.error().message;
    ASSERT_TRUE((*corpus)->wait_until_fresh(std::chrono::seconds(30)));
    server_ = std::make_unique<McpServer>(std::move(*corpus), "1.2.3");
  }
  void serve_root() { serve({.index_path = {}, .folders = {root().string()}}); }
  [[nodiscard]] McpServer& server() { return *server_; }

  McpReply send(std::string_view text, const McpHeaders* headers = nullptr) {
    return server_->answer(server_->read(text, headers, headers == nullptr ? &session_ : nullptr));
  }
  Json ask(const Json& message, const McpHeaders* headers = nullptr) {
    return Json::parse(send(rpc_text(message), headers).text);
  }
  static Json message(const std::string& method, Json params = Json::object()) {
    return {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
  }
  static Json modern(const std::string& method, Json params = Json::object()) {
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", kMcpModern},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
    return message(method, std::move(params));
  }
  Json initialize(const std::string& revision) {
    return ask(message("initialize", {{"protocolVersion", revision},
                                      {"capabilities", Json::object()},
                                      {"clientInfo", {{"name", "test"}, {"version", "1"}}}}));
  }
  // The result of a call, in the latest revision.
  Json call(const std::string& tool, Json arguments) {
    const Json reply =
        ask(modern("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}}));
    EXPECT_TRUE(reply.contains("result")) << reply;
    return reply.value("result", Json());
  }
  // What a call that fails says.
  std::string failure(const std::string& tool, Json arguments) {
    const Json result = call(tool, std::move(arguments));
    EXPECT_EQ(result["isError"], true) << result;
    return result["content"][0]["text"];
  }

 private:
  std::unique_ptr<McpServer> server_;
  McpSession session_;
};

}  // namespace slipstream
