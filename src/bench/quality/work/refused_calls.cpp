#include "bench/quality/work/refused_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slipstream::quality {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kThisArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kThisArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr auto kRefusedCalls = std::to_array<std::uint32_t>({
#ifdef __NR_fork  // not on ARM
    __NR_fork, __NR_vfork,
#endif
    __NR_clone, __NR_clone3,
    // Memory beside the address space.
    __NR_memfd_create, __NR_shmget, __NR_msgget, __NR_semget, __NR_mq_open,
    // The network is empty, and need not be asked.
    __NR_socket, __NR_socketpair,
    // Parts of the kernel in which errors were found again and again.
    __NR_io_uring_setup, __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_ptrace,
    __NR_process_vm_readv, __NR_process_vm_writev, __NR_add_key, __NR_request_key, __NR_keyctl,
    __NR_unshare, __NR_setns, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_open_by_handle_at});

constexpr sock_filter load(std::size_t offset) {
  return {
      .code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = static_cast<std::uint32_t>(offset)};
}
constexpr sock_filter give(std::uint32_t action) {
  return {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = action};
}
// Each skips the next instruction unless the loaded word is as its name says.
constexpr sock_filter if_equal(std::uint32_t value) {
  return {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = value};
}
constexpr sock_filter if_not_equal(std::uint32_t value) {
  return {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 1, .jf = 0, .k = value};
}
constexpr sock_filter if_at_least(std::uint32_t value) {
  return {.code = BPF_JMP | BPF_JGE | BPF_K, .jt = 0, .jf = 1, .k = value};
}

}  // namespace

std::string refused_calls() {
  // x86-64 has a second set of numbers for the same calls ("x32"), which begins here.
  constexpr std::uint32_t kOtherNumbers = 0x40000000;
  std::vector<sock_filter> filter = {
      load(offsetof(seccomp_data, arch)), if_not_equal(kThisArchitecture),
      give(SECCOMP_RET_KILL_PROCESS),     load(offsetof(seccomp_data, nr)),
      if_at_least(kOtherNumbers),         give(SECCOMP_RET_KILL_PROCESS)};
  for (const std::uint32_t call : kRefusedCalls) {
    filter.push_back(if_equal(call));
    filter.push_back(give(SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(give(SECCOMP_RET_ALLOW));
  const auto bytes = std::as_bytes(std::span(filter));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace slipstream::quality
