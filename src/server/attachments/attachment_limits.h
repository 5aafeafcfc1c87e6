// AttachmentLimits: what clients may attach to chats.
//
// Threads: immutable.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace slipstream {

struct AttachmentLimits {
  // One file, as it is sent. Its text has the limit of a file of the index (retrieval_limits.h).
  std::size_t file_bytes_max = std::size_t{16} << 20;
  std::size_t files_of_chat_max = 32;
  std::size_t name_bytes_max = 200;
  std::size_t chat_id_bytes_max = 64;
  std::size_t chats_max = 10'000;  // of all clients
  // Of all bytes, how many one of several keys may have: a share of 1 / n.
  std::uint64_t key_share = 4;
  // Files that are read at the same time, and requests that wait for that or for the disk.
  int n_read_at_once = 2;
  int n_waiting_max = 16;
  std::chrono::hours looks_for_idle_every{1};
};

inline constexpr AttachmentLimits kAttachmentLimits{};

}  // namespace slipstream
