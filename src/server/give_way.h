// give_way(): lowers the priority of this thread below that of the threads that serve sockets or
// compute answers. Work that begins or ends a little later costs less than a delay in the answers of
// others.
//
// Threads: of the calling thread, and of those that it starts later. Errors: false.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace slipstream {

// Every thread may raise its own nice value; 5 more means a third of the weight.
inline bool give_way() {
  constexpr int kNicer = 5;
  const auto thread = static_cast<id_t>(::gettid());
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, thread);
  return errno == 0 && ::setpriority(PRIO_PROCESS, thread, nice + kNicer) == 0;
}

}  // namespace slipstream
