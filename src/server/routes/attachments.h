// AttachmentRoutes: files that belong to a chat, below /slipstream/attachments.
//
//   GET    /slipstream/attachments             what a client may attach, and how much it has
//   GET    /slipstream/attachments/CHAT        the files of a chat
//   DELETE /slipstream/attachments/CHAT        removes all of them
//   POST   /slipstream/attachments/CHAT/NAME   attaches the body, answered when it can be found
//   GET    /slipstream/attachments/CHAT/NAME   lines of its text, ?first_line=&last_line=
//   DELETE /slipstream/attachments/CHAT/NAME   removes it
//
// Files are read on threads of their own, which may take a minute each: neither chats nor the other
// routes wait for them.
//
// Threads: thread-safe.
// Errors:  ApiErrors: 400 for a name, 404, 409 for a limit, 413, 415 for a file without a text, 429
//          for too many requests, 507 for a disk that is full.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>

#include "server/api/api_error.h"
#include "server/attachments/attachment_limits.h"
#include "server/attachments/attachment_store.h"
#include "server/http/http_exchange.h"
#include "server/routes/route_table.h"

namespace slipstream {

class AttachmentRoutes {
 public:
  // REQUIRES: the store outlives this.
  explicit AttachmentRoutes(AttachmentStore& store) : store_(store) {}

  RouteAnswer attach(HttpExchange& exchange, const Client& client);
  RouteAnswer show(HttpExchange& exchange, const Client& client);
  RouteAnswer remove(HttpExchange& exchange, const Client& client);

 private:
  AttachmentStore& store_;
  std::atomic<int> n_waiting_ = 0;
  // Must be the last members: their work uses the others.
  boost::asio::thread_pool disk_{1};
  boost::asio::thread_pool reading_{kAttachmentLimits.n_read_at_once};
};

}  // namespace slipstream
