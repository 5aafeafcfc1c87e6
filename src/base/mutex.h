// Mutex and MutexLock: std::mutex that clang's thread-safety analysis understands. Members written
// as `int n SLIP_GUARDED_BY(mutex_)` are then checked by the compiler (preset "tidy").
//
// Threads: thread-safe.
#pragma once

#include <mutex>

#if defined(__clang__)
#define SLIP_TSA(attribute) __attribute__((attribute))
#else
#define SLIP_TSA(attribute)
#endif
#define SLIP_GUARDED_BY(mutex) SLIP_TSA(guarded_by(mutex))

namespace slipstream {

class SLIP_TSA(capability("mutex")) Mutex {
 public:
  void lock() SLIP_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() SLIP_TSA(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SLIP_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SLIP_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() SLIP_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace slipstream
