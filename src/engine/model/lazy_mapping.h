// LazyMapping: while an object lives, files that this thread maps are not read ahead.
//
// libllama maps a model with MAP_POPULATE: the kernel reads the whole file before mmap returns.
// That is right for a model that fits into memory. If experts stay in the file, it would read all
// of them once for nothing and push other data out of memory. libllama has no parameter for this,
// so we replace mmap: it makes the system call, without that flag while a LazyMapping lives.
//
// Threads: each thread has its own. Errors: none.
#pragma once

namespace slipstream {

class LazyMapping {
 public:
  LazyMapping();
  ~LazyMapping();
  LazyMapping(const LazyMapping&) = delete;
  LazyMapping& operator=(const LazyMapping&) = delete;
};

}  // namespace slipstream
