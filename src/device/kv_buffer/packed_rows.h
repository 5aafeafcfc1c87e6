// Packed rows: the second form in which rows of compressed caches go through get_tensor and
// set_tensor, for a program that saves and restores sequences with libllama's own functions.
//
// Usually a row goes as f16, which is what its tensor claims to be. While a thread packs (or
// unpacks), its calls of get_tensor (set_tensor) leave alone the bytes that ggml points to and
// exchange packed rows (CompressedCache::pack) with the program, which says where they go to (lie)
// by the place of the f16 rows that they stand for. Each cache's centres are exchanged first.
// Bytes: docs/formats/packed-state.md.
//
// Threads: the switch belongs to the thread that sets it; the caches as kv_buffer.h says.
// Errors:  everything that cannot be exchanged makes end_packed_rows() false, with a line in the
//          log; then what was saved or restored since must not be used.
#pragma once

#include <cstddef>

#include "contract/plugin.h"
#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

// From now on, on this thread, until end_packed_rows(). What went before is forgotten.
void begin_packing(void* user, CentresPlace* centres, RowsPlace* rows) noexcept;
void begin_unpacking(void* user, CentresSource* centres, RowsSource* rows) noexcept;
// Rows are f16 again. Whether all that were exchanged went well.
bool end_packed_rows() noexcept;

// For get_tensor and set_tensor: bytes [offset, offset + n_bytes) of the cache's rows. False: this
// thread does not pack (unpack), or the cache is not compressed, so that they go as they are.
bool get_packed(CacheTensor& cache, const void* place, std::size_t offset, std::size_t n_bytes);
bool set_packed(CacheTensor& cache, const void* place, std::size_t offset, std::size_t n_bytes);

}  // namespace slipstream::turbo
