#include "server/store/response_document.h"

#include <charconv>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::string_view kMagic = "slipstream-response 1 ";

// Reads the next number of the line and the character after it.
template <typename Number>
bool read_number(std::string_view& text, Number& number, int base, char behind) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number, base);
  if (error != std::errc() || end == text.end() || *end != behind) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.begin()) + 1);
  return true;
}

}  // namespace

std::string to_document(Salt salt, std::int64_t created_ns, const StoredResponse& stored) {
  std::string text = format_text("{}{:016x} {} {} {}\n", kMagic, salt, created_ns,
                                 stored.response.size(), stored.items.size());
  text.reserve(text.size() + stored.response.size() + stored.items.size());
  text += stored.response;
  text += stored.items;
  return text;
}

Result<DocumentHead> read_document_head(std::string_view text) {
  const std::size_t n_all = text.size();
  DocumentHead head;
  const bool is_ours = text.starts_with(kMagic);
  if (is_ours) text.remove_prefix(kMagic.size());
  constexpr std::uint64_t kPartBytesMax = std::uint64_t{1} << 40;  // keeps sums from overflowing
  if (!is_ours || !read_number(text, head.salt, 16, ' ') ||
      !read_number(text, head.created_ns, 10, ' ') ||
      !read_number(text, head.response_bytes, 10, ' ') ||
      !read_number(text, head.items_bytes, 10, '\n') || head.response_bytes > kPartBytesMax ||
      head.items_bytes > kPartBytesMax) {
    return fail(Code::kCorrupt, "a stored response begins with something else");
  }
  head.head_bytes = n_all - text.size();
  return head;
}

Result<StoredResponse> read_document(std::string_view text) {
  const Result<DocumentHead> head = read_document_head(text.substr(0, kDocumentHeadBytesMax));
  if (!head) return std::unexpected(head.error());
  if (head->n_bytes() != text.size()) {
    return fail(Code::kCorrupt, "a stored response has another length than it says");
  }
  return StoredResponse{
      .response = std::string(text.substr(head->head_bytes, head->response_bytes)),
      .items = std::string(text.substr(head->head_bytes + head->response_bytes))};
}

}  // namespace slipstream
