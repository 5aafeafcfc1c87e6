// ServedModel: a model that the server answers with, under the name that clients use.
//
// Threads: thread-safe.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "server/chat/chat_template.h"

namespace slipstream {

struct ServedModel {
  std::string name;
  std::time_t created;  // when it was loaded
  std::unique_ptr<Engine> engine;
  std::optional<ChatTemplate> chat_template = {};  // none: it is no model for chats
};

}  // namespace slipstream
