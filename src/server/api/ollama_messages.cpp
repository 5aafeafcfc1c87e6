#include "server/api/ollama_messages.h"

#include <cstddef>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "server/api/image_parts.h"

namespace slipstream {
namespace {

const std::string* text_member(const Json& object, std::string_view name) {
  const Json* text = member(object, name);
  return text == nullptr ? nullptr : text->get_ptr<const std::string*>();
}

class OllamaMessages {
 public:
  ApiResult<Json> read(Json messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::string path = format_text("messages[{}]", i);
      if (auto added = add(messages[i], path); !added) return std::unexpected(added.error());
    }
    return std::move(chat_);
  }

 private:
  ApiResult<void> add(Json& message, const std::string& path) {
    const std::string* role = text_member(message, "role");
    const bool is_known = role != nullptr && (*role == "user" || *role == "assistant" ||
                                              *role == "system" || *role == "tool");
    if (!is_known) {
      return refuse(path + ".role",
                    format_text("'{}.role' must be user, assistant, system or tool", path));
    }
    Json content = take(message, "content");
    if (content.is_null()) content = "";
    if (!content.is_string()) {
      return refuse(path + ".content", format_text("'{}.content' must be a text", path));
    }
    ApiResult<Json> with_images = add_images(take(message, "images"), path, std::move(content));
    if (!with_images) return std::unexpected(with_images.error());
    Json said = {{"role", *role}, {"content", std::move(*with_images)}};
    if (*role == "assistant") {
      if (text_member(message, "thinking") != nullptr) {
        said["reasoning_content"] = take(message, "thinking");
      }
      if (auto added = add_calls(take(message, "tool_calls"), path, said); !added) return added;
    } else if (*role == "tool") {
      add_result_of(message, said);
    }
    chat_.push_back(std::move(said));
    return {};
  }

  // Images are base64 alone, and come before the text.
  static ApiResult<Json> add_images(Json images, const std::string& path, Json content) {
    if (images.is_null()) return content;
    if (!images.is_array()) {
      return refuse(path + ".images", format_text("'{}.images' must be a list of base64", path));
    }
    if (images.empty()) return content;
    Json parts = Json::array();
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::string where = format_text("{}.images[{}]", path, i);
      const auto* data = images[i].get_ptr<const std::string*>();
      if (data == nullptr) return refuse(where, format_text("'{}' must be base64", where));
      parts.push_back(image_part("data:image/png;base64," + *data, where));
    }
    parts.push_back({{"type", "text"}, {"text", std::move(content)}});
    return parts;
  }

  ApiResult<void> add_calls(Json calls, const std::string& path, Json& said) {
    if (calls.is_null()) return {};
    const auto wrong = [&] {
      return refuse(path + ".tool_calls",
                    format_text("'{}.tool_calls' must be a list of {{\"function\": {{\"name\": "
                                "..., \"arguments\": {{...}}}}}}",
                                path));
    };
    if (!calls.is_array()) return wrong();
    for (Json& call : calls) {
      const Json* function = member(call, "function");
      const std::string* name = function == nullptr ? nullptr : text_member(*function, "name");
      if (name == nullptr) return wrong();
      const std::string* id = text_member(call, "id");
      ++n_calls_;
      const std::string own = id == nullptr ? format_text("call_{}", n_calls_) : *id;
      open_[*name].push(own);
      in_order_.push(own);
      const std::string called = *name;
      Json arguments = take(call["function"], "arguments");
      if (arguments.is_null()) arguments = Json::object();
      said["tool_calls"].push_back(
          {{"id", own},
           {"type", "function"},
           {"function",
            {{"name", called},
             {"arguments",
              arguments.is_string() ? std::move(arguments) : Json(dump(arguments))}}}});
    }
    return {};
  }

  void add_result_of(const Json& message, Json& said) {
    const std::string* id = text_member(message, "tool_call_id");
    const std::string* name = text_member(message, "tool_name");
    if (name == nullptr) name = text_member(message, "name");
    if (name != nullptr) said["name"] = *name;
    if (id != nullptr) {
      said["tool_call_id"] = *id;
    } else if (name == nullptr) {
      give_next(in_order_, said);
    } else if (const auto open = open_.find(*name); open != open_.end()) {
      give_next(open->second, said);
    }
  }

  static void give_next(std::queue<std::string>& ids, Json& said) {
    if (ids.empty()) return;
    said["tool_call_id"] = ids.front();
    ids.pop();
  }

  Json chat_ = Json::array();
  // Ids of calls whose results are to come: by the name of the tool, and all.
  std::unordered_map<std::string, std::queue<std::string>> open_;
  std::queue<std::string> in_order_;
  std::size_t n_calls_ = 0;
};

}  // namespace

ApiResult<Json> read_ollama_messages(Json messages) {
  return OllamaMessages().read(std::move(messages));
}

ApiResult<Json> read_ollama_tools(Json tools) {
  if (tools.is_null()) return Json();
  if (!tools.is_array()) return refuse("tools", "'tools' must be an array");
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json* function = member(tools[i], "function");
    if (function == nullptr || text_member(*function, "name") == nullptr) {
      return refuse("tools",
                    format_text("'tools[{}]' must be a function with a name, as in "
                                "{{\"type\": \"function\", \"function\": {{\"name\": ...}}}}",
                                i));
    }
    tools[i]["type"] = "function";
  }
  return tools.empty() ? Json() : std::move(tools);
}

}  // namespace slipstream
