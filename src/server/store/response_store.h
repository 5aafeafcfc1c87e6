// ResponseStore: keeps responses that clients may read again or continue, up to a number of bytes.
// The oldest are removed first.
//
// With a folder, responses survive a restart; without one they are kept in memory. A response is
// visible only under the salt of the client that made it. A file has the id as its name. Its first
// line is "slipstream-response 1 SALT CREATED_NS RESPONSE_BYTES ITEMS_BYTES". The response and the
// items of its conversation follow, both as JSON. Damaged files are removed when they are found.
// Files with other names are left alone.
//
// Threads: thread-safe. put(), get() and remove() wait for the disk: call them on workers only.
// Errors:  open(): as PrivateFolder. get(), remove(): kNotFound. put(): kUnsupported if the
//          response exceeds the limit, kOverloaded if too much is being written; file errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  std::string response;  // as it was sent to the client
  std::string items;     // the conversation before the response's output, as a JSON array
};

struct ResponseStoreOptions {
  std::string folder = {};  // empty: keep them in memory
  std::uint64_t bytes_max = std::uint64_t{64} << 20;
  std::size_t n_max = 16'384;
};

class ResponseStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ResponseStore>> open(
      const ResponseStoreOptions& options);

  // REQUIRES: is_response_id(id), and the id is new.
  [[nodiscard]] Result<void> put(const std::string& id, Salt salt, const StoredResponse& stored);
  [[nodiscard]] Result<StoredResponse> get(const std::string& id, Salt salt);
  [[nodiscard]] Result<void> remove(const std::string& id, Salt salt);

 private:
  struct Entry {
    Salt salt = 0;
    std::int64_t created_ns = 0;
    std::uint64_t n_bytes = 0;
    std::shared_ptr<const std::string> text = {};  // only without a folder; shared with readers
  };

  ResponseStore(const ResponseStoreOptions& options, std::unique_ptr<const PrivateFolder> folder);
  [[nodiscard]] Result<void> scan();
  [[nodiscard]] Result<Entry> read_entry(const std::string& id) const;
  [[nodiscard]] Result<Entry> find(const std::string& id, Salt salt);

  // Reserves room for a response that is about to be written. Returns the ids that it removed from
  // the index for that; their files are still there.
  [[nodiscard]] Result<std::vector<std::string>> make_room(std::uint64_t n_bytes);
  [[nodiscard]] Result<void> write_file(const std::string& id, const std::string& text) const;
  [[nodiscard]] Result<std::string> read_file(const std::string& id, std::uint64_t n_bytes) const;
  void remove_file(const std::string& id) const;

  void insert(const std::string& id, Entry entry) SLIP_TSA(requires_capability(mutex_));
  void erase(const std::string& id) SLIP_TSA(requires_capability(mutex_));

  const ResponseStoreOptions options_;
  const std::unique_ptr<const PrivateFolder> folder_;  // null: they are kept in memory
  Mutex mutex_;
  std::map<std::string, Entry> entries_ SLIP_GUARDED_BY(mutex_);
  std::set<std::pair<std::int64_t, std::string>> by_age_ SLIP_GUARDED_BY(mutex_);
  std::uint64_t n_bytes_ SLIP_GUARDED_BY(mutex_) = 0;  // including responses that are being written
};

}  // namespace slipstream
