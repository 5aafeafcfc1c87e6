#include "mcp/json_rpc.h"

#include <utility>
#include <vector>

#include "base/format.h"
#include "mcp/mcp_limits.h"

namespace slipstream {
namespace {

// Looks at nlohmann's events without keeping values, so that nothing is built that is too large.
class Judge final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return count(); }
  bool boolean(bool /*value*/) override { return count(); }
  bool number_integer(number_integer_t /*value*/) override { return count(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return count(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return count(); }
  bool string(string_t& /*value*/) override { return count(); }
  bool binary(binary_t& /*value*/) override { return count(); }
  bool start_object(std::size_t /*n*/) override { return open(); }
  bool start_array(std::size_t /*n*/) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& /*name*/) override {
    if (++n_members_.back() <= kMcpLimits.members_max) return true;
    return refuse(format_text("an object has more than {} members", kMcpLimits.members_max));
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    error_ = {.code = kRpcParseError,
              .message = format_text("this is not JSON, at byte {}", position)};
    return false;
  }
  [[nodiscard]] const RpcError& error() const { return error_; }

 private:
  bool refuse(std::string message) {
    error_ = {.code = kRpcInvalidRequest, .message = std::move(message)};
    return false;
  }
  bool count() {
    if (++n_values_ <= kMcpLimits.values_max) return true;
    return refuse(format_text("the message has more than {} values", kMcpLimits.values_max));
  }
  bool open() {
    n_members_.push_back(0);
    if (n_members_.size() <= kMcpLimits.nesting_max) return count();
    return refuse(format_text("the message is nested more than {} deep", kMcpLimits.nesting_max));
  }
  bool close() {
    n_members_.pop_back();
    return true;
  }

  std::vector<std::size_t> n_members_;  // of each object that is open
  std::size_t n_values_ = 0;
  RpcError error_ = {};
};

bool is_id(const Json& id) {
  if (id.is_number_integer()) return true;
  return id.is_string() && id.get_ref<const std::string&>().size() <= kMcpLimits.id_bytes_max;
}

RpcError bad_request(std::string message) {
  return {.code = kRpcInvalidRequest, .message = std::move(message)};
}

}  // namespace

RpcResult<Json> parse_rpc(std::string_view text) {
  if (text.size() > kMcpLimits.message_bytes_max) {
    return std::unexpected(
        bad_request(format_text("a message may have {} bytes", kMcpLimits.message_bytes_max)));
  }
  Judge judge;
  if (!Json::sax_parse(text, &judge)) return std::unexpected(judge.error());
  return Json::parse(text, nullptr, false);
}

RpcMessage read_rpc(Json& json) {
  RpcMessage message;
  if (!json.is_object()) {
    message.problem = bad_request("a message must be an object");
    return message;
  }
  const Json* id = rpc_member(json, "id");
  if (id != nullptr && is_id(*id)) message.id = *id;
  const Json* version = rpc_member(json, "jsonrpc");
  const Json* method = rpc_member(json, "method");
  if (version == nullptr || *version != "2.0") {
    message.problem = bad_request("'jsonrpc' must be \"2.0\"");
  } else if (id != nullptr && message.id.is_null()) {
    message.problem = bad_request(format_text(
        "'id' must be an integer or a text of at most {} bytes", kMcpLimits.id_bytes_max));
  } else if (method == nullptr && (json.contains("result") || json.contains("error"))) {
    message.kind = RpcMessage::Kind::kResponse;
  } else if (method == nullptr || !method->is_string() ||
             method->get_ref<const std::string&>().size() > kMcpLimits.method_bytes_max) {
    message.problem = bad_request(
        format_text("'method' must be a text of at most {} bytes", kMcpLimits.method_bytes_max));
  } else {
    message.kind = id == nullptr ? RpcMessage::Kind::kNotification : RpcMessage::Kind::kRequest;
    message.method = method->get<std::string>();
    if (const auto params = json.find("params"); params != json.end()) {
      message.params = std::move(*params);
      if (!message.params.is_object()) {
        message.problem =
            RpcError{.code = kRpcInvalidParams, .message = "'params' must be an object"};
        message.params = Json::object();
      }
    }
  }
  return message;
}

Json rpc_reply(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json rpc_reply(const Json& id, const RpcError& error) {
  Json reply = {{"jsonrpc", "2.0"}};
  // JSON-RPC would have null here, which MCP's schemas refuse.
  if (!id.is_null()) reply["id"] = id;
  reply["error"] = {{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) reply["error"]["data"] = error.data;
  return reply;
}

std::string rpc_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* rpc_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string rpc_quoted(std::string_view text) {
  if (text.size() <= kMcpLimits.quoted_bytes_max) return std::string(text);
  return std::string(text.substr(0, kMcpLimits.quoted_bytes_max)) + "...";
}

}  // namespace slipstream
