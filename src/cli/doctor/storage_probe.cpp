#include <fcntl.h>
#include <liburing.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <system_error>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/unique_fd.h"
#include "cli/doctor/probes.h"

namespace slipstream::doctor {
namespace {

Finding probe_space(const std::string& model_dir) {
  constexpr std::uint64_t kLittle = std::uint64_t{5} << 30;
  struct statvfs space{};
  if (::statvfs(model_dir.c_str(), &space) != 0) {
    return {.status = Status::kNote,
            .topic = "disk",
            .value = fail_errno(errno, "cannot access " + model_dir).error().message,
            .advice = "name an existing directory with --dir"};
  }
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  return {
      .status = free_bytes < kLittle ? Status::kNote : Status::kGood,
      .topic = "disk",
      .value = format_text("{} free in {}", format_bytes(free_bytes), model_dir),
      .advice = free_bytes < kLittle ? "free some space, or name another place with --dir" : ""};
}

// Streaming experts bypasses the page cache. Some file systems (tmpfs, some network ones) refuse
// that. The test uses an unnamed temporary file, so nothing is left behind.
Finding probe_direct_io(const std::string& model_dir) {
  const Result<UniqueFd> direct = open_file(model_dir, O_TMPFILE | O_RDWR | O_DIRECT, 0600);
  if (direct) {
    return {.status = Status::kGood, .topic = "direct reads", .value = "allowed", .advice = ""};
  }
  const Result<UniqueFd> plain = open_file(model_dir, O_TMPFILE | O_RDWR, 0600);
  if (!plain) {
    return {.status = Status::kNote,
            .topic = "direct reads",
            .value = "not tried: " + plain.error().message,
            .advice = "run the doctor on a directory you may write to, with --dir"};
  }
  return {.status = Status::kNote,
          .topic = "direct reads",
          .value = "refused by this file system",
          .advice =
              "keep models on a local disk (ext4, xfs, btrfs): reads past the page cache are "
              "faster and leave memory to the model"};
}

Finding probe_io_uring() {
  io_uring ring{};
  const int status = ::io_uring_queue_init(8, &ring, 0);
  if (status == 0) {
    ::io_uring_queue_exit(&ring);
    return {.status = Status::kGood, .topic = "io_uring", .value = "allowed", .advice = ""};
  }
  return {.status = Status::kNote,
          .topic = "io_uring",
          .value = "refused: " + std::generic_category().message(-status),
          .advice =
              "set sysctl kernel.io_uring_disabled=0, or allow io_uring in the container's "
              "seccomp profile; without it reads from SSD are slower"};
}

}  // namespace

std::vector<Finding> probe_storage(const std::string& model_dir) {
  return {probe_space(model_dir), probe_direct_io(model_dir), probe_io_uring()};
}

}  // namespace slipstream::doctor
