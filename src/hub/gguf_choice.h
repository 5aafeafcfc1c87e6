// Which files of a repository are the model that a user means.
//
// A repository holds one model in several quants, each a GGUF file or several parts of one
// (NAME-00001-of-00003.gguf), and beside them files that are no language model: projectors of
// images (mmproj), importance matrices (imatrix). A variant is one of those models with all its
// parts, whose name is the quant in its file name.
//
// Threads: immutable.
// Errors:  kNotFound with the quants there are; kCorrupt where parts are missing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::hub {

// "Q4_K_M" of "dir/Model-7B-q4_k_m.gguf", "UD-Q4_K_XL" of "M-UD-Q4_K_XL-00001-of-00002.gguf";
// empty: the name does not say.
[[nodiscard]] std::string quant_of(std::string_view path);

// Part 1 of 3 of "dir/NAME" for "dir/NAME-00001-of-00003.gguf".
struct SplitName {
  std::string stem;
  int part;
  int n_parts;
};
[[nodiscard]] std::optional<SplitName> parse_split(std::string_view path);

struct Variant {
  std::string quant;               // may be empty
  std::string stem;                // the file's path without .gguf and without its part
  std::vector<std::size_t> parts;  // indices into the paths, in order; 0 parts never
  int n_parts = 1;                 // that there should be

  // What a user can write behind the colon.
  [[nodiscard]] std::string_view name() const;
};

// By stem. Paths that are no language model in GGUF are left out.
[[nodiscard]] std::vector<Variant> find_variants(std::span<const std::string> paths);

struct VariantChoice {
  std::size_t variant_idx;
  // What the user should hear: by what rule it was chosen, and what else there is. Empty where
  // there was no choice to make.
  std::string remark;
};
// asked: a quant or a file's name without .gguf, in any case; empty: Q4_K_M, else Q8_0, else the
// first.
[[nodiscard]] Result<VariantChoice> choose_variant(std::span<const Variant> variants,
                                                   std::string_view asked,
                                                   std::string_view repo_id);

// kCorrupt if one of its parts is missing.
[[nodiscard]] Result<void> check_complete(const Variant& variant);

}  // namespace slipstream::hub
