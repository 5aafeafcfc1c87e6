// GgufModel: the content of a GGUF file's header, without loading the file. For a model in several
// files (NAME-00001-of-00003.gguf), the content of all headers together.
//
// open() checks that every tensor lies within its file, so sums of their sizes cannot overflow.
// Numbers in the metadata are unchecked claims of the file.
//
// Threads: immutable.
// Errors:  kNotFound, kPermission, kIo from the file; kInvalidArgument for a file that is not GGUF
//          or not the first part of a model; kCorrupt for a header that cannot be read or a file
//          that is shorter than its header says.
#pragma once

#include <ggml-cpp.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream {

struct GgufTensor {
  std::string name;
  ggml_type type;
  std::array<std::int64_t, GGML_MAX_DIMS> ne;  // all at least 1
  std::uint64_t n_bytes;
  std::size_t file_idx;
  std::uint64_t file_offset;
};

class GgufModel {
 public:
  [[nodiscard]] static Result<GgufModel> open(const std::filesystem::path& path);

  [[nodiscard]] const std::string& architecture() const { return architecture_; }
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Null if there is none with this name.
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] bool has_tensors(std::string_view prefix) const;

  // Metadata by key; "%s" stands for the architecture, as in "%s.block_count". nullopt if the key
  // is absent or of another type.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] std::size_t array_size(std::string_view key) const;  // 0: not an array
  // An element of an array of integers. A single integer counts for every index.
  [[nodiscard]] std::optional<std::int64_t> integer_at(std::string_view key, std::size_t idx) const;

 private:
  [[nodiscard]] std::int64_t find_key(std::string_view key) const;
  [[nodiscard]] Result<void> add_tensors(const gguf_context& header,
                                         const std::filesystem::path& path);

  gguf_context_ptr header_;  // of the first file
  std::string architecture_;
  std::vector<std::filesystem::path> files_;
  std::vector<GgufTensor> tensors_;  // sorted by name
};

}  // namespace slipstream
