#include "base/slab_reader.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

constexpr unsigned kQueueDepth = 128;
// Large pieces go as several reads, so that a disk with many channels is busy with one expert too.
constexpr std::size_t kReadBytesMax = std::size_t{512} << 10;
// The kernel's limit for one registered area.
constexpr std::size_t kRegisteredBytesMax = std::size_t{1} << 30;
// A kernel that is short of memory refuses for a while: ten seconds are given to it.
constexpr int kRefusalsMax = 10'000;
constexpr std::chrono::milliseconds kRefusalPause{1};

std::uint64_t block_start(std::uint64_t offset) { return offset / kBlockBytes * kBlockBytes; }

}  // namespace

std::size_t FilePiece::n_block_bytes() const {
  const std::uint64_t end = (offset + n_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  return static_cast<std::size_t>(end - block_start(offset));
}

Result<DataFile> open_data_file(const std::string& path, ReadMethod way) {
  DataFile file;
  file.path = path;
  if (way == ReadMethod::kUringDirect) {
    // tmpfs and some network file systems refuse O_DIRECT: then reads go through the page cache.
    if (Result<UniqueFd> direct = open_file(path, O_RDONLY | O_DIRECT)) {
      file.fd = std::move(*direct);
      file.is_direct = true;
    }
  }
  if (!file.fd) {
    Result<UniqueFd> buffered = open_file(path, O_RDONLY);
    if (!buffered) return std::unexpected(std::move(buffered.error()));
    file.fd = std::move(*buffered);
  }
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0)
    return fail_errno(errno, "cannot get the size of " + path);
  file.n_bytes = static_cast<std::uint64_t>(status.st_size);
  return file;
}

struct SlabReader::Ring {
  io_uring uring{};
  unsigned n_under_way = 0;
  bool is_open = false;
  ~Ring() {
    if (is_open) io_uring_queue_exit(&uring);
  }
};

struct SlabReader::Batch {
  Ticket ticket;
  std::size_t n_open;
  std::string failure;  // the first
};

// One read of at most kReadBytesMax, and again for what a short read left.
struct SlabReader::Request {
  FilePiece piece;           // the whole, for messages and the test's fault
  std::uint64_t offset = 0;  // of what is still to be read
  std::byte* into = nullptr;
  std::size_t n_bytes = 0;
  std::uint64_t needed_end = 0;  // bytes from here on are only there to fill a block
  Ticket ticket = 0;
};

SlabReader::SlabReader(ReadMethod way) : way_(way) {
  if (way == ReadMethod::kPread) return;
  auto ring = std::make_unique<Ring>();
  ring->is_open = io_uring_queue_init(kQueueDepth, &ring->uring, 0) == 0;
  if (ring->is_open) {
    ring_ = std::move(ring);
  } else {
    way_ = ReadMethod::kPread;
  }
}

// The results are no longer needed, but wait: the kernel may still write to the memory.
SlabReader::~SlabReader() {
  io_uring_cqe* entry = nullptr;
  while (ring_ && ring_->n_under_way > 0) {
    const int status = io_uring_submit_and_wait(&ring_->uring, 1);
    if (status < 0 && status != -EINTR) return;
    while (io_uring_peek_cqe(&ring_->uring, &entry) == 0) {
      io_uring_cqe_seen(&ring_->uring, entry);
      --ring_->n_under_way;
    }
  }
}

std::string_view SlabReader::way_name() const {
  switch (way_) {
    case ReadMethod::kUringDirect: return "io_uring, past the page cache";
    case ReadMethod::kUringBuffered: return "io_uring, through the page cache";
    case ReadMethod::kPread: return "pread, one at a time";
  }
  return "";
}

void SlabReader::register_memory(std::span<const std::span<std::byte>> areas) {
  if (!ring_) return;
  wait_for_all();
  std::vector<iovec> vectors;
  for (const std::span<std::byte> area : areas) {
    for (std::size_t start = 0; start < area.size(); start += kRegisteredBytesMax) {
      vectors.push_back({.iov_base = area.data() + start,
                         .iov_len = std::min(kRegisteredBytesMax, area.size() - start)});
    }
  }
  // In order of address, so that a read finds its area's number quickly.
  std::ranges::sort(vectors, {}, &iovec::iov_base);
  if (!registered_.empty()) io_uring_unregister_buffers(&ring_->uring);
  registered_.clear();
  if (io_uring_register_buffers(&ring_->uring, vectors.data(),
                                static_cast<unsigned>(vectors.size())) != 0) {
    return;
  }
  for (const iovec& vector : vectors) {
    registered_.emplace_back(static_cast<std::byte*>(vector.iov_base), vector.iov_len);
  }
}

SlabReader::Batch& SlabReader::batch_of(Ticket ticket) {
  const auto found = std::ranges::find(batches_, ticket, &Batch::ticket);
  SLIP_CHECK(found != batches_.end(), "waited for twice");
  return *found;
}

SlabReader::Request* SlabReader::take_request() {
  while (end_.empty() && free_requests_.empty() && requests_.size() >= kQueueDepth) reap();
  if (!end_.empty()) return nullptr;
  if (free_requests_.empty()) {
    requests_.push_back(std::make_unique<Request>());
    return requests_.back().get();
  }
  Request* request = free_requests_.back();
  free_requests_.pop_back();
  return request;
}

SlabReader::Ticket SlabReader::start(std::span<const FilePiece> pieces) {
  const Ticket ticket = ++last_ticket_;
  batches_.push_back({.ticket = ticket, .n_open = 0, .failure = {}});
  for (const FilePiece& piece : pieces) {
    const bool whole_blocks = piece.file->is_direct;
    std::uint64_t at = whole_blocks ? block_start(piece.offset) : piece.offset;
    const std::uint64_t end =
        whole_blocks ? at + piece.n_block_bytes() : piece.offset + piece.n_bytes;
    std::byte* into = piece.into + (at - block_start(piece.offset));
    while (at < end) {
      const std::size_t n_bytes = std::min<std::uint64_t>(kReadBytesMax, end - at);
      Request* request = take_request();
      if (request == nullptr) {
        batch_of(ticket).failure = end_;
        return ticket;
      }
      *request = {.piece = piece,
                  .offset = at,
                  .into = into,
                  .n_bytes = n_bytes,
                  .needed_end = std::min(at + n_bytes, piece.offset + piece.n_bytes),
                  .ticket = ticket};
      ++batch_of(ticket).n_open;
      start_request(*request);
      at += n_bytes;
      into += n_bytes;
    }
  }
  if (ring_) io_uring_submit(&ring_->uring);
  return ticket;
}

void SlabReader::start_request(Request& request) {
  const int fd = request.piece.file->fd.get();
  if (!ring_) {
    const ssize_t result =
        ::pread(fd, request.into, request.n_bytes, static_cast<off_t>(request.offset));
    finish(request, result < 0 ? -errno : static_cast<int>(result));
    return;
  }
  io_uring_sqe* entry = io_uring_get_sqe(&ring_->uring);
  SLIP_CHECK(entry != nullptr, "the queue has a place for every request");
  auto area = std::ranges::upper_bound(registered_, request.into, {}, &std::span<std::byte>::data);
  const bool is_registered =
      area != registered_.begin() &&
      request.into + request.n_bytes <= std::prev(area)->data() + std::prev(area)->size();
  const auto n_bytes = static_cast<unsigned>(request.n_bytes);
  if (is_registered) {
    io_uring_prep_read_fixed(entry, fd, request.into, n_bytes, request.offset,
                             static_cast<int>(std::prev(area) - registered_.begin()));
  } else {
    io_uring_prep_read(entry, fd, request.into, n_bytes, request.offset);
  }
  io_uring_sqe_set_data(entry, &request);
  ++ring_->n_under_way;
}

void SlabReader::finish(Request& request, int result) {
  if (fault_) {
    if (const int error = fault_(request.piece); error != 0) result = -error;
  }
  Batch& batch = batch_of(request.ticket);
  if (result == -EINTR || result == -EAGAIN) {
    start_request(request);
    if (ring_) io_uring_submit(&ring_->uring);
    return;
  }
  const std::uint64_t got_end =
      result > 0 ? request.offset + static_cast<std::uint64_t>(result) : 0;
  if (result > 0 && got_end < request.needed_end) {
    request.offset += static_cast<std::uint64_t>(result);
    request.into += result;
    request.n_bytes -= static_cast<std::size_t>(result);
    start_request(request);
    if (ring_) io_uring_submit(&ring_->uring);
    return;
  }
  if (result <= 0 && batch.failure.empty()) {
    batch.failure = result == 0
                        ? format_text("{} ends before byte {}: it was cut short while in use",
                                      request.piece.file->path, request.needed_end)
                        : format_text("cannot read {} at byte {}: {}", request.piece.file->path,
                                      request.offset, std::strerror(-result));
  }
  --batch.n_open;
  free_requests_.push_back(&request);
}

// Waits until a read has ended.
void SlabReader::reap() {
  if (!ring_ || ring_->n_under_way == 0) return;
  const int status = io_uring_submit_and_wait(&ring_->uring, 1);
  if (status < 0 && status != -EINTR && io_uring_cq_ready(&ring_->uring) == 0) {
    const bool may_pass = status == -EAGAIN || status == -EBUSY;
    if (!may_pass || ++n_refusals_ == kRefusalsMax) return give_up(-status);
    std::this_thread::sleep_for(kRefusalPause);
    return;
  }
  n_refusals_ = 0;
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_->uring, &entry) == 0) {
    auto* request = static_cast<Request*>(io_uring_cqe_get_data(entry));
    const int result = entry->res;
    io_uring_cqe_seen(&ring_->uring, entry);
    --ring_->n_under_way;
    finish(*request, result);
  }
}

void SlabReader::give_up(int error) {
  end_ = format_text("io_uring has stopped ({}): start again, with io=pread if it happens again",
                     std::strerror(error));
  for (Batch& batch : batches_) {
    if (batch.n_open == 0) continue;
    batch.n_open = 0;
    if (batch.failure.empty()) batch.failure = end_;
  }
  ring_->n_under_way = 0;
}

Result<void> SlabReader::wait(Ticket ticket) {
  while (batch_of(ticket).n_open > 0) reap();
  const auto done = std::ranges::find(batches_, ticket, &Batch::ticket);
  const std::string failure = std::move(done->failure);
  batches_.erase(done);
  if (!failure.empty()) return fail(Code::kIo, failure);
  return {};
}

void SlabReader::wait_for_all() {
  while (ring_ && ring_->n_under_way > 0) reap();
}

}  // namespace slipstream
