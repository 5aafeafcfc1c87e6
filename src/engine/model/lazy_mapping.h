// LazyMapping: while one lives, files that this thread maps are not read at once.
//
// libllama maps a model with MAP_POPULATE: the kernel reads the whole file before mmap returns.
// That is right for a model that fits into memory. With experts that stay in the file it would read
// all of them once for nothing, and throw out of memory what was there. libllama has no parameter
// for it, so mmap itself is ours: the system call, without that flag where one of these lives.
//
// Threads: each has its own. Errors: none.
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
