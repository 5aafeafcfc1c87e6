#include "engine/model/lazy_mapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>

namespace slipstream {
namespace {

thread_local int n_alive = 0;

}  // namespace

LazyMapping::LazyMapping() { ++n_alive; }
LazyMapping::~LazyMapping() { --n_alive; }

}  // namespace slipstream

// Sanitizers replace mmap themselves, which must stay; the model is then read at once.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* mmap(void* address, size_t n_bytes, int protection, int flags, int fd,
                      off_t offset) noexcept {
  if (slipstream::n_alive > 0) flags &= ~MAP_POPULATE;
  return std::bit_cast<void*>(::syscall(SYS_mmap, address, n_bytes, protection, flags, fd, offset));
}
#endif
