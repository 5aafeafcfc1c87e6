// ResponseStore: responses that clients may ask for again or go on from, within a number of bytes;
// the oldest go first.
//
// In a folder they survive a restart; without one they are kept in memory. Each is its client's
// alone: under another salt it is not there. A file is named by the id and has a line
//   slipstream-response 1 SALT CREATED_NS RESPONSE_BYTES ITEMS_BYTES
// and behind it the response and the items of its conversation, both JSON. One that is damaged is
// removed when it is met; other names are left alone.
//
// Threads: thread-safe. put(), get() and remove() wait for the disk: on workers only.
// Errors:  open(): as of PrivateFolder. get(), remove(): kNotFound. put(): kUnsupported for what is
//          larger than all may be together, kOverloaded if too much is being written, as of files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/private_folder.h"
#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

struct StoredResponse {
  std::string response;  // as the client got it
  std::string items;     // all that came before its output, as a JSON array
};

struct ResponseStoreOptions {
  std::string folder = {};  // empty: in memory
  std::uint64_t bytes_max = std::uint64_t{64} << 20;
  std::size_t n_max = 16'384;
};

class ResponseStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ResponseStore>> open(
      const ResponseStoreOptions& options);

  // REQUIRES: is_response_id(id), and it is new.
  [[nodiscard]] Result<void> put(const std::string& id, Salt salt, const StoredResponse& stored);
  [[nodiscard]] Result<StoredResponse> get(const std::string& id, Salt salt);
  [[nodiscard]] Result<void> remove(const std::string& id, Salt salt);

 private:
  struct Entry {
    Salt salt = 0;
    std::int64_t created_ns = 0;
    std::uint64_t n_bytes = 0;
    std::shared_ptr<const std::string> text = {};  // in memory only; shared with who reads it
  };

  ResponseStore(const ResponseStoreOptions& options, std::optional<PrivateFolder> folder);
  [[nodiscard]] Result<void> scan();
  [[nodiscard]] Result<Entry> read_entry(const std::string& id) const;
  [[nodiscard]] Result<Entry> find(const std::string& id, Salt salt);

  // Takes so many bytes for one that is about to be written; what had to go.
  [[nodiscard]] Result<std::vector<std::string>> make_room(std::uint64_t n_bytes);
  [[nodiscard]] Result<void> write_file(const std::string& id, const std::string& text) const;
  [[nodiscard]] Result<std::string> read_file(const std::string& id, std::uint64_t n_bytes) const;
  void remove_file(const std::string& id) const;

  void insert(const std::string& id, Entry entry) SLIP_TSA(requires_capability(mutex_));
  void erase(const std::string& id) SLIP_TSA(requires_capability(mutex_));

  const ResponseStoreOptions options_;
  const std::optional<PrivateFolder> folder_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ SLIP_GUARDED_BY(mutex_);
  std::set<std::pair<std::int64_t, std::string>> by_age_ SLIP_GUARDED_BY(mutex_);
  std::uint64_t n_bytes_ SLIP_GUARDED_BY(mutex_) = 0;  // with those that are being written
};

}  // namespace slipstream
