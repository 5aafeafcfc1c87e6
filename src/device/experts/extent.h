// Extent: where in which file the bytes of a tensor lie.
//
// ggml hands a buffer the bytes of a tensor, not their place in a file. If the model is mapped, the
// place follows from the address, and not one byte needs to be touched. If it is read instead, the
// program has the file open: the tensor is found by its name in the GGUF header of each open file,
// and the bytes at hand are compared with the file's.
//
// Threads: thread-safe. Errors: kNotFound when no open file holds the bytes, kCorrupt when the file
//          is too short for them.
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
  bool is_mapped = false;  // the bytes at hand are the file's own, not a copy
};

[[nodiscard]] Result<Extent> find_extent(std::span<const std::byte> bytes,
                                         const std::string& tensor_name);

// The file bytes were mapped for reading and perhaps read ahead: gives their memory back.
void release_mapped_pages(std::span<const std::byte> bytes, const Extent& extent);

}  // namespace slipstream::turbo
