#include "engine/text/text_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "engine/text/text_limits.h"

namespace slipstream {

static_assert(kTextLimits.stop_bytes_max <= std::numeric_limits<std::uint16_t>::max(),
              "the borders of a stop string are stored in 16 bits");

Result<TextStream> TextStream::create(std::vector<std::string> stops) {
  if (stops.size() > kTextLimits.stops_max) {
    return fail(Code::kInvalidArgument, format_text("{} stop strings are more than the {} allowed",
                                                    stops.size(), kTextLimits.stops_max));
  }
  for (const std::string& stop : stops) {
    if (stop.empty()) return fail(Code::kInvalidArgument, "a stop string is empty");
    if (stop.size() > kTextLimits.stop_bytes_max) {
      return fail(Code::kInvalidArgument,
                  format_text("a stop string of {} bytes is longer than the {} allowed",
                              stop.size(), kTextLimits.stop_bytes_max));
    }
  }
  return TextStream(std::move(stops));
}

TextStream::TextStream(std::vector<std::string> stops) {
  stops_.reserve(stops.size());
  for (std::string& stop : stops) stops_.emplace_back(std::move(stop));
}

TextStream::Stop::Stop(std::string stop_text) : text(std::move(stop_text)), borders(text.size()) {
  std::size_t n_border = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (n_border > 0 && text[i] != text[n_border]) n_border = borders[n_border - 1];
    if (text[i] == text[n_border]) ++n_border;
    borders[i] = static_cast<std::uint16_t>(n_border);
  }
}

void TextStream::Stop::push(char byte) {
  while (n_matched > 0 && text[n_matched] != byte) n_matched = borders[n_matched - 1];
  if (text[n_matched] == byte) ++n_matched;
}

TextStream::Delta TextStream::push(std::string_view piece, bool may_stop) {
  if (stopped_) return {.stopped = true, .matched_stop = matched_stop_};
  for (const char byte : piece) {
    held_ += byte;
    for (Stop& stop : stops_) stop.push(byte);
    if (!may_stop) forgo_complete();
    if (const Stop* complete = longest_complete()) {
      stopped_ = true;
      matched_stop_ = complete->text;
      std::string text = emit(held_.size() - matched_stop_.size(), true);
      return {.text = std::move(text), .stopped = true, .matched_stop = matched_stop_};
    }
  }
  return {.text = emit(held_.size() - n_bytes_in_stops(), false)};
}

TextStream::Delta TextStream::finish() {
  if (stopped_) return {.stopped = true, .matched_stop = matched_stop_};
  return {.text = emit(held_.size(), true)};
}

std::string TextStream::emit(std::size_t n_bytes, bool last) {
  std::string text;
  const std::size_t n_taken =
      append_repaired_utf8(text, std::string_view(held_).substr(0, n_bytes));
  if (last) {
    if (n_taken < n_bytes) text += kReplacementCharacter;
    held_.clear();
  } else {
    held_.erase(0, n_taken);
  }
  return text;
}

const TextStream::Stop* TextStream::longest_complete() const {
  const Stop* longest = nullptr;
  for (const Stop& stop : stops_) {
    if (stop.is_complete() && (longest == nullptr || stop.text.size() > longest->text.size())) {
      longest = &stop;
    }
  }
  return longest;
}

// The end of one may be the beginning of the next.
void TextStream::forgo_complete() {
  for (Stop& stop : stops_) {
    if (stop.is_complete()) stop.n_matched = stop.borders.back();
  }
}

std::size_t TextStream::n_bytes_in_stops() const {
  std::size_t n_bytes = 0;
  for (const Stop& stop : stops_) n_bytes = std::max(n_bytes, stop.n_matched);
  return n_bytes;
}

}  // namespace slipstream
