// say_for(): a conversation as a template with these abilities can say it.
//
// Threads: immutable.
// Errors:  kInvalidArgument for messages that are not as OpenAI's API has them, or that hold
// something
//          other than text.
#pragma once

#include "base/result.h"
#include "server/template/chat_template.h"

namespace slipstream {

[[nodiscard]] Result<ChatInput> say_for(ChatInput input, const TemplateAbilities& abilities,
                                        const ChatFormat& format);

}  // namespace slipstream
