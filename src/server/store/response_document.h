// A stored response as the text of a file: a line that says what follows, then its two parts.
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
  std::uint64_t head_bytes = 0;  // of the line itself

  [[nodiscard]] std::uint64_t n_bytes() const { return head_bytes + response_bytes + items_bytes; }
};

[[nodiscard]] std::string to_document(Salt salt, std::int64_t created_ns,
                                      const StoredResponse& stored);
// Of a text that begins with it.
[[nodiscard]] Result<DocumentHead> read_document_head(std::string_view text);
[[nodiscard]] Result<StoredResponse> read_document(std::string_view text);

}  // namespace slipstream
