#include "engine/rpc/rpc_devices.h"

#include <ggml-cpp.h>
#include <ggml-rpc.h>

#include <csignal>
#include <mutex>

#include "base/format.h"
#include "base/log.h"
#include "engine/model/llama_log.h"
#include "engine/model/model.h"

namespace slipstream {
namespace {

// ggml's client writes to a host that may be gone; the signal would end the process without a word.
void ignore_broken_pipes() {
  static std::once_flag once;
  std::call_once(once, [] { std::signal(SIGPIPE, SIG_IGN); });
}

// A tensor of a cache, of which ggml's client asks the host how many bytes it takes: it asks only
// about operations that may need more than their tensor, and never believes that one takes less
// than the size by its strides. So all rows lie in one place.
std::size_t cache_tensor_bytes(ggml_backend_dev_t device, const std::string& name,
                               std::int64_t n_channels, std::int64_t n_cells) {
  const ggml_context_ptr context(
      ggml_init({.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, n_channels, n_cells);
  ggml_set_name(tensor, name.c_str());
  tensor->op = GGML_OP_FLASH_ATTN_EXT;
  for (int i = 1; i < GGML_MAX_DIMS; ++i) tensor->nb[i] = 0;
  return ggml_backend_buft_get_alloc_size(ggml_backend_dev_buffer_type(device), tensor);
}

}  // namespace

Result<ggml_backend_dev_t> open_rpc_device(const RpcHost& host) {
  load_backends();
  ignore_broken_pipes();
  ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
  auto* const add_server =
      rpc == nullptr ? nullptr
                     : reinterpret_cast<decltype(ggml_backend_rpc_add_server)*>(
                           ggml_backend_reg_get_proc_address(rpc, "ggml_backend_rpc_add_server"));
  if (add_server == nullptr) {
    return fail(Code::kUnsupported, "--rpc needs ggml's RPC backend: install libggml0-backend-rpc");
  }
  (void)take_llama_complaint();
  ggml_backend_reg_t server = add_server(host.name.c_str());
  const std::size_t n_devices = server == nullptr ? 0 : ggml_backend_reg_dev_count(server);
  if (n_devices == 0) {
    return fail(Code::kUnsupported,
                with_llama_complaint(format_text("{} offers no device", host.name)));
  }
  if (n_devices > 1) {
    log::warn("rpc.devices",
              {{"host", host.name},
               {"n", n_devices},
               {"advice", "the first is used: ggml-rpc-server -d NAME offers another"}});
  }
  return ggml_backend_reg_dev_get(server, 0);
}

std::uint64_t free_bytes(ggml_backend_dev_t device) {
  std::size_t free = 0;
  std::size_t total = 0;
  ggml_backend_dev_memory(device, &free, &total);
  return free;
}

Result<void> check_same_scheme(const RpcHost& host, ggml_backend_dev_t device,
                               ggml_backend_dev_t own, std::span<const CacheShape> caches,
                               std::int64_t n_cells, const std::string& scheme) {
  for (const CacheShape& cache : caches) {
    const auto is_same = [&](const char* side, std::int64_t n_channels) {
      const std::string name = format_text("cache_{}_l{}", side, cache.layer);
      return cache_tensor_bytes(own, name, n_channels, n_cells) ==
             cache_tensor_bytes(device, name, n_channels, n_cells);
    };
    if (is_same("k", cache.key_channels) && is_same("v", cache.value_channels)) continue;
    return fail(
        Code::kInvalidArgument,
        format_text("{} does not store the KV cache of layer {} as --kv {} does here: start "
                    "ggml-rpc-server there with GGML_TURBO_KV={} and with the same version "
                    "of the plugin",
                    host.name, cache.layer, scheme, scheme));
  }
  return {};
}

}  // namespace slipstream
