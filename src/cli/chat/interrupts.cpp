#include "cli/chat/interrupts.h"

#include <atomic>

namespace slipstream::chat {
namespace {

// A signal handler can reach only global variables.
std::atomic<bool> g_was_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void note_interrupt(int /*signal*/) { g_was_interrupted = true; }

}  // namespace

Interrupts::Interrupts() {
  struct sigaction action{};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);  // without SA_RESTART, so that a read of the terminal ends
  sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { sigaction(SIGINT, &before_, nullptr); }

bool Interrupts::happened() { return g_was_interrupted; }
void Interrupts::clear() { g_was_interrupted = false; }

Interrupts::Masked::Masked() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before_);
}

Interrupts::Masked::~Masked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace slipstream::chat
