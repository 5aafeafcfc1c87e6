// install_missing(): offers to pull the models of the hub that a command names and that are not
// installed.
//
// On a terminal it asks, with the size; with is_sure it does not ask. A name that is a file, or is
// not written like a model of the hub, is left to find_model().
//
// Threads: call from one thread, before the command loads anything.
// Errors:  kNotFound where it can neither ask nor is sure, with the command that pulls, and if the
//          answer is no; those of hub/pull.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream {

[[nodiscard]] Result<void> install_missing(const std::vector<std::string>& names, bool is_sure);

}  // namespace slipstream
