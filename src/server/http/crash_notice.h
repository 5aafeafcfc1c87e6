// CrashNotice: what a client is told when the process dies under its request, such as by an
// assertion of a library: a 503 if nothing of the answer was sent, an error event between two
// events of a stream, and nothing in the middle of a write, where it would be taken for content.
//
// The handler of a deadly signal can do next to nothing. It walks a table that has a byte for each
// descriptor and sends texts that were made before. A stack that has overflowed has no room for
// it, and SIGKILL has no handler: then clients see their connection close.
//
// Threads: a notice is its request's; the handler runs on any. Errors: none.
#pragma once

namespace slipstream {

class CrashNotice {
 public:
  // Nothing of the answer has been sent.
  explicit CrashNotice(int fd);
  ~CrashNotice() { say_nothing(); }
  CrashNotice(const CrashNotice&) = delete;
  CrashNotice& operator=(const CrashNotice&) = delete;

  // Before a write, until it has ended.
  void say_nothing() const;
  // Whole events have been sent, and more may follow.
  void say_event(bool is_chunked) const;

 private:
  const int fd_;
};

// Once, before there are requests. Deadly signals do afterwards what they did before.
void send_notices_on_crash();

}  // namespace slipstream
