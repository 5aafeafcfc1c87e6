// SlabReader: reads pieces of large files into memory, many at once and past the page cache.
//
// io_uring with O_DIRECT where the system allows both; buffered reads where the file system refuses
// O_DIRECT; one pread after another where io_uring is refused (containers often do). With O_DIRECT
// the disk writes whole blocks, so a piece that does not start and end with a block is read with
// what lies around it: the caller gives memory with room for that (see FilePiece).
//
// Threads: thread-compatible.
// Errors:  kIo with the file's name; a file that ends too early is kIo. When the kernel refuses to
//          go on with its queue, all reads are kIo from then on: those under way may still be
//          written to memory, so that it must not be read into in another way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

// What O_DIRECT asks of offsets, lengths and addresses. 512 would do on many disks; 4096 does on
// all.
inline constexpr std::size_t kBlockBytes = 4096;

enum class ReadMethod { kUringDirect, kUringBuffered, kPread };

struct DataFile {
  std::string path;
  UniqueFd fd;
  std::uint64_t n_bytes = 0;
  bool is_direct = false;
};

// Opens the file for reads in the best way up to `way`.
[[nodiscard]] Result<DataFile> open_data_file(const std::string& path, ReadMethod way);

// Bytes [offset, offset + n_bytes) of a file. `into` receives the enclosing whole blocks and starts
// with a block: the piece itself begins at into[offset % kBlockBytes].
struct FilePiece {
  const DataFile* file;
  std::uint64_t offset;
  std::size_t n_bytes;
  std::byte* into;

  // How many bytes `into` has to have room for.
  [[nodiscard]] std::size_t n_block_bytes() const;
};

class SlabReader {
 public:
  // Reads given to one start() are waited for together.
  using Ticket = std::uint64_t;

  explicit SlabReader(ReadMethod way);
  ~SlabReader();
  SlabReader(const SlabReader&) = delete;
  SlabReader& operator=(const SlabReader&) = delete;

  // What is really used, and in words for a log line.
  [[nodiscard]] ReadMethod way() const { return way_; }
  [[nodiscard]] std::string_view way_name() const;

  // Memory that reads will go to. Naming it once saves the kernel from looking up its pages at each
  // read. Where that is refused (locked memory is limited), reads work all the same.
  void register_memory(std::span<const std::span<std::byte>> areas);

  // The memory belongs to the reader until wait() returns, whether that succeeds or not.
  [[nodiscard]] Ticket start(std::span<const FilePiece> pieces);
  [[nodiscard]] Result<void> wait(Ticket ticket);
  // Until nothing is under way. Whoever waits for a ticket later learns how it ended.
  void wait_for_all();
  // Whether the kernel refuses to go on: nothing is read any more.
  [[nodiscard]] bool has_ended() const { return !end_.empty(); }

  // For tests: asked before each read's result is believed; an errno makes it a failure.
  void set_fault(std::function<int(const FilePiece&)> fault) { fault_ = std::move(fault); }

 private:
  struct Ring;
  struct Batch;
  struct Request;

  void finish(Request& request, int result);
  void give_up(int error);
  void start_request(Request& request);
  void reap();
  Request* take_request();  // null: nothing is read any more
  Batch& batch_of(Ticket ticket);

  ReadMethod way_;
  std::unique_ptr<Ring> ring_;
  std::vector<std::unique_ptr<Request>> requests_;  // all there are
  std::vector<Request*> free_requests_;
  std::vector<Batch> batches_;  // not waited for yet
  Ticket last_ticket_ = 0;
  std::vector<std::span<std::byte>> registered_;
  int n_refusals_ = 0;  // one after the other
  std::string end_;     // why nothing is read any more
  std::function<int(const FilePiece&)> fault_;
};

}  // namespace slipstream
