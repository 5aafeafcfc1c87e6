#include "device/ggml_abi/thread_pool.h"

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

namespace slipstream::turbo {
namespace {

using GetProcAddress = void* (*)(ggml_backend_reg_t, const char*);
using SetThreadPool = void (*)(ggml_backend_t, ggml_threadpool_t);

constexpr const char* kSetThreadPool = "ggml_backend_cpu_set_threadpool";

// Libllama may look into the entry in another thread.
void put(ggml_backend_reg_t reg, GetProcAddress function) {
  std::atomic_ref(reg->iface.get_proc_address).store(function);
}

struct Watch {
  ggml_backend_reg_t reg = nullptr;
  GetProcAddress own = nullptr;
  SetThreadPool set = nullptr;
  // When the plugin is unloaded, its functions are gone.
  ~Watch() {
    if (reg != nullptr) put(reg, own);
  }
};

Watch& watch() {
  static Watch instance;
  return instance;
}

thread_local std::optional<ggml_threadpool_t> handed_over;

void note_and_set(ggml_backend_t backend, ggml_threadpool_t pool) {
  handed_over = pool;
  watch().set(backend, pool);
}

void* give_out(ggml_backend_reg_t reg, const char* name) {
  if (std::string_view(name) == kSetThreadPool) return reinterpret_cast<void*>(note_and_set);
  return watch().own(reg, name);
}

}  // namespace

void watch_thread_pools(ggml_backend_reg_t cpu) {
  static std::once_flag once;
  std::call_once(once, [cpu] {
    Watch& entry = watch();
    entry.own = cpu->iface.get_proc_address;
    if (entry.own == nullptr) return;
    entry.set = reinterpret_cast<SetThreadPool>(entry.own(cpu, kSetThreadPool));
    if (entry.set == nullptr) return;
    entry.reg = cpu;
    put(cpu, give_out);
  });
}

std::optional<ggml_threadpool_t> take_thread_pool() {
  return std::exchange(handed_over, std::nullopt);
}

void set_thread_pool(ggml_backend_t cpu_backend, ggml_threadpool_t pool) {
  if (watch().set != nullptr) watch().set(cpu_backend, pool);
}

}  // namespace slipstream::turbo
