// GgufModel: what the header of a GGUF file says, without loading it; of a model in several files
// (NAME-00001-of-00003.gguf) what all of them say together.
//
// open() has checked that every tensor lies within its file, so that their sizes can be added up
// without care. Numbers of the metadata are only what the file claims.
//
// Threads: immutable. Errors: kNotFound, kPermission, kIo as of the file; kInvalidArgument for what
//          is no GGUF file or not the first part of a model; kCorrupt for a header that cannot be
//          read or a file that is shorter than its header says.
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
  // Null if there is none of this name.
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] bool has_tensors(std::string_view prefix) const;

  // Metadata by key: "%s.block_count" is that of the architecture. Nothing where the key is absent
  // or of another type.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] std::size_t array_size(std::string_view key) const;  // 0: no array
  // An element of an array of integers; of a single integer, it for every index.
  [[nodiscard]] std::optional<std::int64_t> integer_at(std::string_view key, std::size_t idx) const;

 private:
  [[nodiscard]] std::int64_t find_key(std::string_view key) const;
  [[nodiscard]] Result<void> add_tensors(const gguf_context& header,
                                         const std::filesystem::path& path);

  gguf_context_ptr header_;  // of the first file
  std::string architecture_;
  std::vector<std::filesystem::path> files_;
  std::vector<GgufTensor> tensors_;  // by name
};

}  // namespace slipstream
