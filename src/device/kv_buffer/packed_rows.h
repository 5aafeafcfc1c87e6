// Packed rows: a second form in which get_tensor and set_tensor transfer rows of compressed caches,
// for a program that saves and restores sequences with libllama's own functions.
//
// Usually rows are transferred as f16, the type of the tensor. While a thread packs (unpacks), its
// get_tensor (set_tensor) calls do not touch the bytes that ggml points to. They write (read)
// packed rows (CompressedCache::pack) at an address that the program gives for the place of the f16
// rows. The centres of a cache are transferred first. Bytes: docs/formats/packed-state.md.
//
// Threads: the switch belongs to the thread that sets it; the caches as kv_buffer.h says.
// Errors:  a transfer that fails is logged and makes end_packed_rows() false; then what was saved
//          or restored since must not be used.
#pragma once

#include <cstddef>

#include "contract/plugin.h"
#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

// Start to pack or unpack on this thread, until end_packed_rows(). An earlier exchange is dropped.
void begin_packing(void* user, CentresPlace* centres, RowsPlace* rows) noexcept;
void begin_unpacking(void* user, CentresSource* centres, RowsSource* rows) noexcept;
// Makes rows f16 again. Returns whether all rows were transferred.
bool end_packed_rows() noexcept;

// Whether the rows of this thread go elsewhere than where ggml points.
[[nodiscard]] bool is_exchanging() noexcept;
// Makes end_packed_rows() false, if this thread packs or unpacks.
void fail_packed_rows() noexcept;

// Called by get_tensor and set_tensor for bytes [offset, offset + n_bytes) of the cache's rows.
// False: this thread does not pack (unpack), or the cache is not compressed, so the caller
// transfers the rows as usual.
bool get_packed(CacheTensor& cache, const void* place, std::size_t offset, std::size_t n_bytes);
bool set_packed(CacheTensor& cache, const void* place, std::size_t offset, std::size_t n_bytes);

}  // namespace slipstream::turbo
