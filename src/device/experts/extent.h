// Extent: the file that holds the bytes of a tensor, and their offset in it.
//
// ggml gives a buffer the bytes of a tensor, not their place in a file. If the model is mapped, the
// place follows from the address, and no byte has to be read. If the model is read instead, the
// program has its file open. Then the tensor is searched by its name in the GGUF header of each
// open file, and bytes at both ends are compared with those in the file.
//
// Threads: thread-safe.
// Errors:  kNotFound if no open file holds the bytes, kCorrupt if the file is too short for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace slipstream::turbo {

struct Extent {
  std::string path;
  std::uint64_t offset = 0;
  bool is_mapped = false;  // the bytes are the mapped file itself, not a copy
};

[[nodiscard]] Result<Extent> find_extent(std::span<const std::byte> bytes,
                                         const std::string& tensor_name);

// Releases the memory of mapped file bytes, which the system may have read ahead.
void release_mapped_pages(std::span<const std::byte> bytes, const Extent& extent);

}  // namespace slipstream::turbo
