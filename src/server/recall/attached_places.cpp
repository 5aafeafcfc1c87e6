#include "server/recall/attached_places.h"

#include <algorithm>
#include <utility>

#include "server/recall/recall_limits.h"

namespace slipstream {
namespace {

constexpr int kBeginningShare = 4;  // of what is found, where something is

struct Whole {
  RecallSource source;
  std::string text;
  int n_tokens;
};

bool is_shown(const AttachedQuestion& question, const RecallSource& place) {
  return std::ranges::any_of(question.shown,
                             [&](const RecallSource& source) { return source.covers(place); });
}

// Whether the conversation has any place of this text.
bool is_new(const AttachedQuestion& question, const RecallSource& file) {
  return std::ranges::none_of(question.shown,
                              [&](const RecallSource& source) { return file.covers(source); });
}

// The files that are short enough to be given whole, the shortest first.
Result<std::vector<Whole>> read_short(AttachedFiles& attached, const AttachedQuestion& question,
                                      const PlaceWriter& writer) {
  std::vector<Whole> all;
  for (const IndexedFile& file : question.files) {
    RecallSource source = source_of(question.chat, file);
    if (!is_new(question, source) ||
        std::cmp_greater(file.n_bytes, PlaceWriter::kBytesPerTokenMax *
                                           static_cast<std::size_t>(writer.n_left()))) {
      continue;
    }
    Result<std::string> text = attached.text_of(file);
    if (!text) return std::unexpected(text.error());
    const int n_tokens = writer.n_tokens_of(source, *text) + PlaceWriter::kTokensOfHead;
    all.push_back({.source = std::move(source), .text = std::move(*text), .n_tokens = n_tokens});
  }
  std::ranges::stable_sort(all, {}, &Whole::n_tokens);
  return all;
}

// Places that answer the message, the best first.
Result<std::vector<std::pair<RecallSource, std::string>>> search(AttachedFiles& attached,
                                                                 const AttachedQuestion& question,
                                                                 const PlaceWriter& writer) {
  std::vector<std::pair<RecallSource, std::string>> places;
  Result<SearchAnswer> answer = attached.search({.query = question.text,
                                                 .n_results_max = kRecallLimits.retrieved_max,
                                                 .share_min = kRecallLimits.retrieved_share_min});
  // "???" has no words.
  if (!answer && answer.error().code == Code::kInvalidArgument) return places;
  if (!answer) return std::unexpected(answer.error());
  for (Found& found : answer->found) {
    if (found.score < kRecallLimits.retrieved_score_share_min * answer->found.front().score) break;
    const auto file = std::ranges::find(question.files, found.path, &IndexedFile::path);
    if (file == question.files.end()) continue;  // it was added a moment ago
    RecallSource source = source_of(question.chat, *file);
    source.first_line = found.first_line;
    source.last_line = found.last_line;
    if (is_shown(question, source) || writer.has(source)) continue;
    places.emplace_back(std::move(source), std::move(found.text));
  }
  return places;
}

Result<void> add_beginnings(AttachedFiles& attached, const AttachedQuestion& question,
                            std::span<const IndexedFile* const> files, int n_tokens_max,
                            PlaceWriter& writer) {
  for (const IndexedFile* file : files) {
    const Result<std::string> text = attached.text_of(*file);
    if (!text) return std::unexpected(text.error());
    (void)writer.add(source_of(question.chat, *file), *text,
                     n_tokens_max / static_cast<int>(files.size()));
  }
  return {};
}

}  // namespace

RecallSource source_of(const std::string& chat, const IndexedFile& file) {
  return {.chat = chat,
          .path = file.path,
          .version = file.content,
          .first_line = 1,
          .last_line = std::max(1, static_cast<int>(file.n_lines))};
}

Result<void> find_attached(AttachedFiles& attached, const AttachedQuestion& question,
                           PlaceWriter& writer) {
  Result<std::vector<Whole>> wholes = read_short(attached, question, writer);
  if (!wholes) return std::unexpected(wholes.error());
  std::int64_t n_of_all = 0;
  for (const Whole& whole : *wholes) n_of_all += whole.n_tokens;
  const auto n_new = std::ranges::count_if(question.files, [&](const IndexedFile& file) {
    return is_new(question, source_of(question.chat, file));
  });
  // If not all fit, half of the room is for parts.
  const bool all_fit = n_new == std::ssize(*wholes) && n_of_all <= writer.n_left();
  const int n_of_parts = all_fit ? 0 : writer.n_left() / 2;
  for (const Whole& whole : *wholes) {
    if (whole.n_tokens > writer.n_left() - n_of_parts) break;
    (void)writer.add(whole.source, whole.text);
  }

  std::vector<const IndexedFile*> others;  // new, and not given whole
  bool has_more = false;                   // of any file
  for (const IndexedFile& file : question.files) {
    const RecallSource source = source_of(question.chat, file);
    if (is_shown(question, source) || writer.has(source)) continue;
    has_more = true;
    if (is_new(question, source)) others.push_back(&file);
  }
  if (!has_more) return {};
  writer.limit(question.n_found_tokens_max);
  const auto found = search(attached, question, writer);
  if (!found) return std::unexpected(found.error());
  if (!others.empty()) {
    const int n_tokens = writer.n_left() / (found->empty() ? 1 : kBeginningShare);
    if (Result<void> added = add_beginnings(attached, question, others, n_tokens, writer); !added) {
      return added;
    }
  }
  for (const auto& [source, text] : *found) {
    if (writer.has(source)) continue;  // it is in a beginning
    if (!writer.add(source, text)) break;
  }
  return {};
}

}  // namespace slipstream
