// CrashNotice: what a client is told if the process dies during its request, for example by an
// assertion of a library. It is a 503 if nothing of the answer was sent, an error event between two
// events of a stream (a line of JSON in a stream of those), and nothing in the middle of a write, where
// it would be taken for content.
//
// The handler of a fatal signal can do almost nothing. It walks a table with one byte per
// descriptor and sends prepared texts. After a stack overflow there is no room for the handler, and
// SIGKILL has no handler: clients then see their connection close.
//
// Threads: a notice belongs to its request; the handler runs on any thread.
// Errors:  none.
#pragma once

#include <string_view>

namespace slipstream {

class CrashNotice {
 public:
  // REQUIRES: nothing of the answer has been sent.
  explicit CrashNotice(int fd);
  ~CrashNotice() { say_nothing(); }
  CrashNotice(const CrashNotice&) = delete;
  CrashNotice& operator=(const CrashNotice&) = delete;

  // Call this before a write. It holds until the write has ended.
  void say_nothing() const;
  // How the events of a stream are told apart.
  enum class Stream : bool { kEvents, kLines };
  // Call this when only whole events have been sent and more may follow.
  void say_event(Stream stream, bool is_chunked) const;

 private:
  const int fd_;
};

// Call this once, before there are requests. Fatal signals then still do what they did before.
void send_notices_on_crash();
// What clients are told from now on. REQUIRES: no other thread is about to crash.
void set_crash_notice(std::string_view message);

}  // namespace slipstream
