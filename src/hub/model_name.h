// ModelName: a user's name for a model of the hub, "org/repo" or "org/repo:quant".
//
// Both parts become names of directories, so only the hub's own alphabet is accepted: letters,
// digits, '-', '_' and '.', no leading or trailing '.' or '-', no "--" and no "..".
//
// Threads: immutable. Errors: kInvalidArgument, with what a name looks like.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream::hub {

struct ModelName {
  std::string org;
  std::string repo;
  std::string quant;  // "Q4_K_M", or a file's name without .gguf; empty: not given

  [[nodiscard]] std::string repo_id() const { return org + "/" + repo; }
  // As the user wrote it: org/repo[:quant].
  [[nodiscard]] std::string text() const {
    return quant.empty() ? repo_id() : repo_id() + ":" + quant;
  }
};

[[nodiscard]] Result<ModelName> parse_model_name(std::string_view text);

// ASCII letters in upper case, the form in which quants are compared.
[[nodiscard]] std::string upper_case(std::string_view text);

}  // namespace slipstream::hub
