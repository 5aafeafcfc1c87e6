// The format of a stored response: one line with sizes, then the two parts (response_store.h).
//
// Threads: immutable. Errors: kCorrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/request.h"
#include "server/store/response_store.h"

namespace slipstream {

inline constexpr std::size_t kDocumentHeadBytesMax = 128;

struct DocumentHead {
  Salt salt = 0;
  std::int64_t created_ns = 0;
  std::uint64_t response_bytes = 0;
  std::uint64_t items_bytes = 0;
  std::uint64_t head_bytes = 0;  // length of the line

  [[nodiscard]] std::uint64_t n_bytes() const { return head_bytes + response_bytes + items_bytes; }
};

[[nodiscard]] std::string to_document(Salt salt, std::int64_t created_ns,
                                      const StoredResponse& stored);
// REQUIRES: `text` is the document or its first kDocumentHeadBytesMax bytes.
[[nodiscard]] Result<DocumentHead> read_document_head(std::string_view text);
[[nodiscard]] Result<StoredResponse> read_document(std::string_view text);

}  // namespace slipstream
