#include "server/api/message_blocks.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/api/image_parts.h"

namespace slipstream {
namespace {

// Claude Code's first block of "system" is a line about itself that differs in every conversation.
// It is removed, because no two conversations could share a prefix with it.
constexpr std::string_view kAttribution = "x-anthropic-billing-header:";

std::string type_of(const Json& block) {
  const Json* type = member(block, "type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : "";
}

// Returns null if the block has no such text.
std::string* text_in(Json& block, std::string_view name) {
  if (!block.is_object()) return nullptr;
  const auto found = block.find(name);
  return found == block.end() || !found->is_string() ? nullptr : &found->get_ref<std::string&>();
}

Json text_part(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

std::unexpected<ApiError> refuse_block(const std::string& path, const std::string& type) {
  return refuse(
      path, type.empty()
                ? format_text("'{}' must be a block with a type", path)
                : format_text("'{}' is of type {}: here this server takes text only", path, type));
}

// Adds the text of a "text" block, or of a "document" block whose source is text.
ApiResult<void> add_text(Json& block, const std::string& path, Json& parts) {
  const std::string type = type_of(block);
  if (std::string* text = text_in(block, "text"); type == "text" && text != nullptr) {
    parts.push_back(text_part(std::move(*text)));
    return {};
  }
  if (type == "document" && block.contains("source")) {
    Json& source = block["source"];
    std::string* text = text_in(source, "data");
    if (type_of(source) == "text" && text != nullptr) {
      parts.push_back(text_part(std::move(*text)));
      return {};
    }
  }
  return refuse_block(path, type);
}

// The same, or an image.
ApiResult<void> add_part(Json& block, const std::string& path, Json& parts) {
  if (type_of(block) != "image") return add_text(block, path, parts);
  ApiResult<Json> image = image_part_of_block(block, path);
  if (!image) return std::unexpected(image.error());
  parts.push_back(std::move(*image));
  return {};
}

using AddBlock = ApiResult<void>(Json& block, const std::string& path, Json& parts);

// The content is a text or a list of blocks.
ApiResult<Json> text_content(Json content, const std::string& path, AddBlock& add = add_text) {
  if (content.is_string() || content.is_null()) return content;
  if (!content.is_array()) {
    return refuse(path, format_text("'{}' must be a text or a list of blocks", path));
  }
  Json parts = Json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (auto added = add(content[i], format_text("{}[{}]", path, i), parts); !added) {
      return std::unexpected(added.error());
    }
  }
  return parts;
}

ApiResult<Json> tool_message(Json& block, const std::string& path) {
  const std::string* id = text_in(block, "tool_use_id");
  if (id == nullptr) {
    return refuse(path + ".tool_use_id", format_text("'{}.tool_use_id' is required", path));
  }
  ApiResult<Json> content =
      text_content(block.contains("content") ? std::move(block["content"]) : Json(),
                   path + ".content", add_part);
  if (!content) return std::unexpected(content.error());
  if (content->is_null()) *content = "";
  return Json{{"role", "tool"}, {"tool_call_id", *id}, {"content", std::move(*content)}};
}

// Tool results come first, wherever they are among the blocks: they answer the previous message.
ApiResult<void> add_user(Json blocks, const std::string& path, Json& chat) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string block_path = format_text("{}[{}]", path, i);
    if (type_of(blocks[i]) == "tool_result") {
      ApiResult<Json> message = tool_message(blocks[i], block_path);
      if (!message) return std::unexpected(message.error());
      chat.push_back(std::move(*message));
    } else if (auto added = add_part(blocks[i], block_path, parts); !added) {
      return added;
    }
  }
  if (!parts.empty()) chat.push_back({{"role", "user"}, {"content", std::move(parts)}});
  return {};
}

ApiResult<Json> tool_call(Json& block, const std::string& path) {
  const std::string* name = text_in(block, "name");
  const std::string* id = text_in(block, "id");
  if (name == nullptr || id == nullptr) {
    return refuse(path, format_text("'{}' must have an id and a name", path));
  }
  Json input = block.contains("input") ? std::move(block["input"]) : Json::object();
  return Json{{"id", *id},
              {"type", "function"},
              {"function", {{"name", *name}, {"arguments", std::move(input)}}}};
}

ApiResult<void> add_assistant(Json blocks, const std::string& path, Json& chat) {
  Json parts = Json::array();
  Json calls = Json::array();
  std::string reasoning;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Json& block = blocks[i];
    const std::string block_path = format_text("{}[{}]", path, i);
    const std::string type = type_of(block);
    if (type == "redacted_thinking") continue;
    if (type == "thinking") {
      if (const std::string* text = text_in(block, "thinking")) reasoning += *text;
    } else if (type == "tool_use") {
      ApiResult<Json> call = tool_call(block, block_path);
      if (!call) return std::unexpected(call.error());
      calls.push_back(std::move(*call));
    } else if (auto added = add_text(block, block_path, parts); !added) {
      return added;
    }
  }
  Json message = {{"role", "assistant"}, {"content", std::move(parts)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  chat.push_back(std::move(message));
  return {};
}

ApiResult<void> add_message(Json& message, const std::string& path, Json& chat) {
  const std::string* role = text_in(message, "role");
  const bool is_known =
      role != nullptr && (*role == "user" || *role == "assistant" || *role == "system");
  if (!is_known) {
    return refuse(path + ".role", format_text("'{}.role' must be user, assistant or system", path));
  }
  const std::string content_path = path + ".content";
  Json content = message.contains("content") ? std::move(message["content"]) : Json();
  if (content.is_string()) {
    chat.push_back({{"role", *role}, {"content", std::move(content)}});
    return {};
  }
  if (!content.is_array()) {
    return refuse(content_path,
                  format_text("'{}' must be a text or a list of blocks", content_path));
  }
  if (*role == "user") return add_user(std::move(content), content_path, chat);
  if (*role == "assistant") return add_assistant(std::move(content), content_path, chat);
  ApiResult<Json> parts = text_content(std::move(content), content_path);
  if (!parts) return std::unexpected(parts.error());
  chat.push_back({{"role", "system"}, {"content", std::move(*parts)}});
  return {};
}

}  // namespace

ApiResult<Json> to_system_message(Json system) {
  if (system.is_array() && !system.empty()) {
    const std::string* first = text_in(system[0], "text");
    if (first != nullptr && first->starts_with(kAttribution)) system.erase(0);
  }
  ApiResult<Json> content = text_content(std::move(system), "system");
  if (!content) return std::unexpected(content.error());
  const std::string* text = content->get_ptr<const std::string*>();
  const bool says_nothing = text != nullptr ? text->empty() : content->empty();
  if (says_nothing) return Json();
  return Json{{"role", "system"}, {"content", std::move(*content)}};
}

ApiResult<void> add_messages(Json messages, Json& chat) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (auto added = add_message(messages[i], format_text("messages[{}]", i), chat); !added) {
      return added;
    }
  }
  return {};
}

}  // namespace slipstream
