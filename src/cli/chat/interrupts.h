// Interrupts: while this object lives, Ctrl-C sets a flag to poll and does not end the program.
//
// Threads: made in the main thread, the only one that receives the signal if others
//          block it (Masked).
// Errors:  none.
#pragma once

#include <csignal>

namespace slipstream::chat {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether there was one since the last clear().
  [[nodiscard]] static bool happened();
  static void clear();

  // Threads that start while this object lives do not receive the signal, so that it interrupts
  // what the main thread waits for.
  class Masked {
   public:
    Masked();
    ~Masked();
    Masked(const Masked&) = delete;
    Masked& operator=(const Masked&) = delete;

   private:
    sigset_t before_{};
  };

 private:
  struct sigaction before_{};
};

}  // namespace slipstream::chat
