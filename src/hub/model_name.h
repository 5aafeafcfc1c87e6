// ModelName: what a user calls a model of the hub, "org/repo" or "org/repo:quant".
//
// Both parts become names of directories, so that only the hub's own alphabet is taken: letters,
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
  std::string quant;  // "Q4_K_M", or the name of a file without .gguf; empty: not said

  [[nodiscard]] std::string repo_id() const { return org + "/" + repo; }
  // As it was written: org/repo[:quant].
  [[nodiscard]] std::string text() const {
    return quant.empty() ? repo_id() : repo_id() + ":" + quant;
  }
};

[[nodiscard]] Result<ModelName> parse_model_name(std::string_view text);

// Letters of ASCII in upper case: quants are compared so.
[[nodiscard]] std::string upper_case(std::string_view text);

}  // namespace slipstream::hub
