#include "server/api/response_items.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/api/image_parts.h"
#include "server/api/json_fields.h"

namespace slipstream {
namespace {

// The text of one part of a message, a result or reasoning. Null: the part is not text.
Json* text_of_part(Json& part) {
  constexpr std::array<std::string_view, 5> kTexts = {"input_text", "output_text", "text",
                                                      "reasoning_text", "summary_text"};
  const Json* type = member(part, "type");
  if (type == nullptr || !type->is_string()) return nullptr;
  const auto& name = type->get_ref<const std::string&>();
  const bool is_text = std::ranges::contains(kTexts, std::string_view(name));
  if (!is_text && name != "refusal") return nullptr;
  const auto text = part.find(is_text ? "text" : "refusal");
  return text != part.end() && text->is_string() ? &*text : nullptr;
}

std::unexpected<ApiError> refuse_part(const std::string& where, const Json* type) {
  return refuse(where, format_text("'{}' is of type {}: only text is supported, and images in what "
                                   "a user says and tools return",
                                   where, type == nullptr ? "?" : dump(*type)));
}

// Moves a text out of a field that is a string or an array of parts. The texts of parts are joined
// with newlines, as for chat messages.
ApiResult<std::string> take_text(Json& item, const char* name, const std::string& path) {
  const std::string where = format_text("{}.{}", path, name);
  Json content = take(item, name);
  if (content.is_string()) return std::move(content.get_ref<std::string&>());
  if (!content.is_array()) {
    return refuse(where, format_text("'{}' must be a string or an array of parts", where));
  }
  std::string texts;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json* text = text_of_part(content[i]);
    if (text == nullptr) {
      const Json* type = member(content[i], "type");
      return refuse_part(format_text("{}[{}]", where, i), type);
    }
    if (i > 0) texts += '\n';
    texts += text->get_ref<const std::string&>();
  }
  return texts;
}

bool is_input_image(const Json& part) {
  const Json* type = member(part, "type");
  return type != nullptr && *type == "input_image";
}

// The same where images may be: with one of them a list of parts, as in chat messages.
ApiResult<Json> take_content(Json& item, const char* name, const std::string& path) {
  const Json* content = member(item, name);
  if (content == nullptr || !content->is_array() ||
      std::ranges::none_of(*content, is_input_image)) {
    return take_text(item, name, path).transform([](std::string text) {
      return Json(std::move(text));
    });
  }
  Json taken = take(item, name);
  Json parts = Json::array();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const std::string where = format_text("{}.{}[{}]", path, name, i);
    if (is_input_image(taken[i])) {
      ApiResult<Json> image = image_part_of_input(taken[i], where);
      if (!image) return std::unexpected(image.error());
      parts.push_back(std::move(*image));
    } else if (Json* text = text_of_part(taken[i]); text != nullptr) {
      parts.push_back({{"type", "text"}, {"text", std::move(*text)}});
    } else {
      const Json* type = member(taken[i], "type");
      return refuse_part(where, type);
    }
  }
  return parts;
}

ApiResult<Json> take_required_text(Json& item, const char* name, const std::string& path) {
  Json text = take(item, name);
  if (text.is_string()) return text;
  const std::string where = format_text("{}.{}", path, name);
  return refuse(where, format_text("'{}' must be a string", where));
}

void append_line(Json& to, const char* name, const std::string& text) {
  if (text.empty()) return;
  Json& field = to[name];
  if (!field.is_string() || field.get_ref<const std::string&>().empty()) {
    field = text;
    return;
  }
  auto& all = field.get_ref<std::string&>();
  all += '\n';
  all += text;
}

}  // namespace

ApiResult<void> ItemMessages::add(Json& item, const std::string& path) {
  if (!item.is_object()) return refuse(path, format_text("'{}' must be an object", path));
  JsonFields fields(item, path);
  const std::string type = fields.text("type").value_or("message");
  if (fields.error()) return std::unexpected(*fields.error());
  if (type == "message") return add_message(item, path);
  if (type == "reasoning") return add_reasoning(item, path);
  if (type == "function_call") return add_call(item, path);
  if (type == "function_call_output") return add_result(item, path);
  return refuse(path + ".type",
                format_text("'{}' is of type {}: this server takes message, reasoning, "
                            "function_call, function_call_output and item_reference",
                            path, type));
}

Json ItemMessages::take_all() {
  end_turn();
  return std::move(messages_);
}

ApiResult<void> ItemMessages::add_message(Json& item, const std::string& path) {
  JsonFields fields(item, path);
  std::string role = fields.text("role").value_or("");
  if (fields.error()) return std::unexpected(*fields.error());
  constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
  if (!std::ranges::contains(kRoles, std::string_view(role))) {
    return refuse(path + ".role",
                  format_text("'{}.role' must be user, assistant, system or developer", path));
  }
  if (role == "assistant") {
    const ApiResult<std::string> text = take_text(item, "content", path);
    if (!text) return std::unexpected(text.error());
    append_line(turn(), "content", *text);
    return {};
  }
  ApiResult<Json> content = take_content(item, "content", path);
  if (!content) return std::unexpected(content.error());
  end_turn();
  if (role == "developer") role = "system";
  messages_.push_back({{"role", std::move(role)}, {"content", std::move(*content)}});
  return {};
}

ApiResult<void> ItemMessages::add_reasoning(Json& item, const std::string& path) {
  // The reasoning itself if it is there, else its summary.
  const Json* content = member(item, "content");
  const bool has_content = content != nullptr && content->is_array() && !content->empty();
  const char* name = has_content ? "content" : "summary";
  const Json* summary = member(item, name);
  if (summary == nullptr || summary->is_null()) return {};
  const ApiResult<std::string> text = take_text(item, name, path);
  if (!text) return std::unexpected(text.error());
  if (!text->empty()) append_line(turn(), "reasoning_content", *text);
  return {};
}

ApiResult<void> ItemMessages::add_call(Json& item, const std::string& path) {
  std::array<Json, 3> texts;
  constexpr std::array<const char*, 3> kNames = {"call_id", "name", "arguments"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    ApiResult<Json> text = take_required_text(item, kNames[i], path);
    if (!text) return std::unexpected(text.error());
    texts[i] = std::move(*text);
  }
  auto& [call_id, name, arguments] = texts;
  Json call = {{"id", std::move(call_id)},
               {"type", "function"},
               {"function", {{"name", std::move(name)}, {"arguments", std::move(arguments)}}}};
  turn()["tool_calls"].push_back(std::move(call));
  return {};
}

ApiResult<void> ItemMessages::add_result(Json& item, const std::string& path) {
  ApiResult<Json> call_id = take_required_text(item, "call_id", path);
  if (!call_id) return std::unexpected(call_id.error());
  ApiResult<Json> output = take_content(item, "output", path);
  if (!output) return std::unexpected(output.error());
  end_turn();
  messages_.push_back(
      {{"role", "tool"}, {"tool_call_id", std::move(*call_id)}, {"content", std::move(*output)}});
  return {};
}

Json& ItemMessages::turn() {
  if (turn_.is_null()) turn_ = {{"role", "assistant"}, {"content", ""}};
  return turn_;
}

void ItemMessages::end_turn() {
  if (!turn_.is_null()) messages_.push_back(std::exchange(turn_, Json()));
}

}  // namespace slipstream
