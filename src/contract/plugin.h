// What the plugin offers to a program that knows it: functions that ggml's registry finds by name
// (ggml_backend_reg_get_proc_address of the registry entry kPluginName). Both sides take a
// function's name and type from here, so that neither can differ.
//
//   auto* open = reinterpret_cast<OpenDevice::Function*>(get_proc_address(reg, OpenDevice::kName));
//
// No function throws. Texts are null-terminated. What fails says why in ggml's log.
//
// Threads: each function says.
#pragma once

#include <cstddef>

#include "contract/expert_counters.h"
#include "contract/kv_memory_counters.h"

namespace slipstream::turbo {

inline constexpr const char* kPluginName = "TURBO";

// --- devices

// A device for one model: a ggml_backend_dev_t, or null. `scheme`: see scheme.h. `experts`: how
// experts are streamed, as GGML_TURBO_EXPERTS says it; empty: they are not. `prompts`: "on" or
// "off", as GGML_TURBO_PROMPTS says it: whether our own kernels multiply plain weights with many
// columns. `kv_memory`: how much of the KV cache's codes stays in memory, as GGML_TURBO_KV_MEMORY
// says it, with a scheme that limits what is read; empty: all. Thread-safe.
struct OpenDevice {
  static constexpr const char* kName = "ggml_turbo_open";
  using Function = void*(const char* scheme, const char* experts, const char* prompts,
                         const char* kv_memory);
};
// REQUIRES: its model and contexts are gone.
struct CloseDevice {
  static constexpr const char* kName = "ggml_turbo_close";
  using Function = void(void* device);
};

// The scheme of contexts made from now on. False: there is none of that name, or the device was
// opened with a kv_memory, and it reads all. Thread-safe.
struct SetScheme {
  static constexpr const char* kName = "ggml_turbo_set_scheme";
  using Function = bool(void* device, const char* scheme);
};

// The file of what was fitted to keys, for contexts made from now on; empty: none. False: it cannot
// be used, and none is. Thread-safe.
struct UseKeys {
  static constexpr const char* kName = "ggml_turbo_use_keys";
  using Function = bool(void* device, const char* path);
};

// Fits keys to all that the device computes from now on, for a file. With an empty path that ends,
// and the file is written. Gives the number of layers fitted by the run that ended; -1: it could
// not be written. Thread-safe.
struct FitKeys {
  static constexpr const char* kName = "ggml_turbo_fit_keys";
  using Function = int(void* device, const char* path);
};

// A row for each layer, of all models in the process added up. Gives their number. Thread-safe.
struct ReadExpertCounters {
  static constexpr const char* kName = "ggml_turbo_expert_counters";
  using Function = std::size_t(ExpertCounters* rows, std::size_t n_rows_max);
};

// Of all devices that were ever opened with a kv_memory, added up. False: there was none. Thread-safe.
struct ReadKvMemoryCounters {
  static constexpr const char* kName = "ggml_turbo_kv_memory_counters";
  using Function = bool(KvMemoryCounters* counters);
};

// --- sequences as they are stored (docs/formats/packed-state.md)
//
// Between Begin... and EndPackedRows rows of compressed caches go through libllama's own functions
// that save and restore sequences as codes, not as f16: ggml's bytes are left alone, and the
// program is asked where the codes go to, or lie. The switch belongs to the thread that sets it.
//
// The program's functions: null instead of an address refuses. Centres that are already there need
// not be packed again: null then, and no refusal. `side`: 0 for keys, 1 for values. `place`: what
// libllama gave ggml for these rows.
using CentresPlace = void*(void* user, int layer, int side, std::size_t n_bytes);
using RowsPlace = void*(void* user, const void* place, std::size_t n_rows, std::size_t row_bytes,
                        std::size_t packed_row_bytes);
using CentresSource = const void*(void* user, int layer, int side, std::size_t n_bytes);
using RowsSource = const void*(void* user, const void* place, std::size_t n_rows,
                               std::size_t row_bytes, std::size_t packed_row_bytes);

struct BeginPacking {
  static constexpr const char* kName = "ggml_turbo_begin_packing";
  using Function = void(void* user, CentresPlace* centres, RowsPlace* rows);
};
struct BeginUnpacking {
  static constexpr const char* kName = "ggml_turbo_begin_unpacking";
  using Function = void(void* user, CentresSource* centres, RowsSource* rows);
};
// Whether all rows since went well. If not, what was saved or restored must not be used.
struct EndPackedRows {
  static constexpr const char* kName = "ggml_turbo_end_packed_rows";
  using Function = bool();
};

}  // namespace slipstream::turbo
