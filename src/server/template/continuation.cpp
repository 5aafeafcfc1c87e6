#include "server/template/continuation.h"

#include "server/ascii.h"

namespace slipstream {

Result<std::string> text_to_continue(const Json& messages) {
  const Json& last = messages.back();
  if (last["role"] != "assistant") {
    return fail(Code::kInvalidArgument, "only an assistant's message can be continued");
  }
  const Json* content = member(last, "content");
  if (content != nullptr && content->is_array() && !content->empty()) {
    content = member(content->front(), "text");
  }
  const auto* text = content == nullptr ? nullptr : content->get_ptr<const std::string*>();
  if (text == nullptr || trim(*text).empty()) {
    return fail(Code::kInvalidArgument, "the last message has no text that could be continued");
  }
  return *text;
}

// What follows the last byte of a client is the template's closing. Searching for the text instead
// would find a short one in it: "end" in "<|im_end|>".
Result<MarkedText> cut_behind(const MarkedText& prompt, std::string_view text) {
  const std::string_view body = trim(text);
  const std::size_t end = prompt.client_ranges().empty() ? 0 : prompt.client_ranges().back().end;
  const std::string_view whole = std::string_view(prompt.text()).substr(0, end);
  std::size_t n_kept = whole.size();
  while (n_kept > 0 && is_space(whole[n_kept - 1])) --n_kept;
  if (!whole.substr(0, n_kept).ends_with(body)) {
    return fail(Code::kInvalidArgument,
                "the model's chat template changes the last message, so it cannot be continued");
  }
  MarkedText cut = prompt.slice(0, n_kept);
  const auto behind = static_cast<std::size_t>(body.data() + body.size() - text.data());
  cut.append(text.substr(behind), Origin::kClient);
  return cut;
}

}  // namespace slipstream
