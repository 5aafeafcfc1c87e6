#include "server/recall/message_text.h"

#include <utility>

#include "server/template/image_mark.h"

namespace slipstream {

bool is_said_by(const Json& message, std::string_view role) {
  const Json* said_by = member(message, "role");
  return said_by != nullptr && *said_by == role;
}

std::string text_of_message(const Json& message) {
  const Json* content = member(message, "content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get_ref<const std::string&>();
  if (!content->is_array()) return {};
  std::string text;
  for (const Json& part : *content) {
    const Json* words = member(part, "text");
    if (words == nullptr || !words->is_string() || is_image_mark(part)) continue;
    if (!text.empty()) text += '\n';
    text += words->get_ref<const std::string&>();
  }
  return text;
}

std::size_t put_before_content(Json& message, std::string_view text) {
  const auto content = message.find("content");
  if (content == message.end()) return 0;
  if (content->is_string()) {
    auto& words = content->get_ref<std::string&>();
    words.insert(0, std::string(text) + "\n");
  } else if (content->is_array()) {
    const bool has_text = !text_of_message(message).empty();
    content->insert(content->begin(), Json{{"type", "text"}, {"text", text}});
    if (!has_text) return text.size();
  } else {
    return 0;
  }
  return text.size() + 1;
}

}  // namespace slipstream
