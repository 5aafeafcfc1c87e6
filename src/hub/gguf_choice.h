// Chooses the files of a repository that are the model a user means.
//
// A repository holds one model in several quants, each of them a GGUF file or several parts of one
// (NAME-00001-of-00003.gguf). It may also hold files that are not a language model: image
// projectors (mmproj), importance matrices (imatrix). A variant is one of the models with all its
// parts. Its name is the quant in its file name.
//
// Threads: immutable.
// Errors:  kNotFound with the available quants; kCorrupt if parts are missing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::hub {

// "Q4_K_M" for "dir/Model-7B-q4_k_m.gguf", "UD-Q4_K_XL" for "M-UD-Q4_K_XL-00001-of-00002.gguf";
// empty if the name does not say.
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
  std::string stem;                // the file's path without .gguf and without its part number
  std::vector<std::size_t> parts;  // indices into the paths, in order; never empty
  int n_parts = 1;                 // how many there should be

  // What a user can write after the colon.
  [[nodiscard]] std::string_view name() const;
};

// Sorted by stem. Paths that are not a language model in GGUF are left out.
[[nodiscard]] std::vector<Variant> find_variants(std::span<const std::string> paths);

struct VariantChoice {
  std::size_t variant_idx;
  // A message for the user: by which rule the variant was chosen, and what else there is. Empty if
  // there was no choice to make.
  std::string remark;
};
// asked: a quant, or a file's name without .gguf, in upper or lower case. If empty: Q4_K_M, else
// Q8_0, else the first.
[[nodiscard]] Result<VariantChoice> choose_variant(std::span<const Variant> variants,
                                                   std::string_view asked,
                                                   std::string_view repo_id);

// Returns kCorrupt if a part is missing.
[[nodiscard]] Result<void> check_complete(const Variant& variant);

}  // namespace slipstream::hub
