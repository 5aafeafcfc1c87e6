// ServedModel: a model that the server answers with, under the name that clients use.
//
// Threads: thread-safe.
#pragma once

#include <ctime>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace slipstream {

struct ServedModel {
  std::string name;
  std::time_t created;  // when it was loaded
  std::unique_ptr<Engine> engine;
};

}  // namespace slipstream
