// say_for(): rewrites a conversation so that a template with these abilities can render it.
//
// Threads: immutable.
// Errors:  kInvalidArgument for messages that are not in the form of OpenAI's API, or that contain
//          something other than text.
#pragma once

#include "base/result.h"
#include "server/template/chat_template.h"

namespace slipstream {

[[nodiscard]] Result<ChatInput> say_for(ChatInput input, const TemplateAbilities& abilities,
                                        const ChatFormat& format);

}  // namespace slipstream
