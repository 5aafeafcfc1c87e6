#include "server/output/output_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/ascii.h"
#include "server/output/calls/json_calls.h"
#include "server/output/calls/named_json_call.h"
#include "server/output/output_limits.h"

namespace slipstream {
namespace {

using Kind = ChatDelta::Kind;

constexpr JsonCallsSyntax kBareJson{.only_known_tools = true};
constexpr CallOpening kBareOpening{.text = "", .json = &kBareJson};
constexpr NamedJsonSyntax kHarmonyArguments{};
constexpr std::string_view kMessage = "<|message|>";

// After a call that ended before its closing markup, up to this many bytes are parsed again. Longer
// text becomes content without parsing: otherwise parsing could take quadratic time.
constexpr std::size_t kReadAgainMax = 64;

bool parses_calls(const OutputParser::Options& options) {
  return !options.tools.empty() || tool_call_format(options.format.tool_calls).markup_is_tokens;
}

// The tool in a header such as " to=functions.get_weather<|constrain|>json".
std::string_view recipient(std::string_view header) {
  constexpr std::string_view kTo = "to=";
  const std::size_t start = header.find(kTo);
  if (start == header.npos) return {};
  header.remove_prefix(start + kTo.size());
  header = header.substr(0, header.find_first_of(" <\n\t"));
  constexpr std::string_view kNamespace = "functions.";
  if (header.starts_with(kNamespace)) header.remove_prefix(kNamespace.size());
  return header;
}

}  // namespace

class OutputParser::Calls : public CallSink {
 public:
  explicit Calls(OutputParser& parser) : parser_(parser) {}

  void begin(std::string_view name) override {
    parser_.content_.meet_markup();
    parser_.held_.clear();
    parser_.deltas_.push_back(
        {.kind = Kind::kCallBegin, .text = std::string(name), .call_idx = n_calls_++});
    is_open_ = is_settled_ = true;
  }
  void arguments(std::string_view text) override {
    if (parser_.deltas_.empty() || parser_.deltas_.back().kind != Kind::kCallArguments) {
      parser_.deltas_.push_back({.kind = Kind::kCallArguments, .call_idx = n_calls_ - 1});
    }
    parser_.deltas_.back().text += text;
  }
  void end(bool complete) override {
    parser_.deltas_.push_back(
        {.kind = Kind::kCallEnd, .call_idx = n_calls_ - 1, .complete = complete});
    is_open_ = false;
    reader_has_called_ = is_settled_ = true;
  }
  void settle() override { is_settled_ = true; }

  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] bool reader_has_called() const { return reader_has_called_; }
  // Whether everything up to the current byte is accounted for. Called once per byte.
  [[nodiscard]] bool take_settled() { return std::exchange(is_settled_, false); }
  void start_reader() { reader_has_called_ = is_settled_ = false; }

 private:
  OutputParser& parser_;
  int n_calls_ = 0;
  bool is_open_ = false;
  bool is_settled_ = false;
  bool reader_has_called_ = false;  // a call of the current reader has ended
};

std::vector<OutputParser::Marker> OutputParser::content_markers(const Options& options) {
  const ToolCallFormat& format = tool_call_format(options.format.tool_calls);
  const ReasoningTags tags = reasoning_tags(options.format.reasoning);
  std::vector<Marker> markers;
  if (format.family == ToolCallFamily::kHarmony) {
    markers.push_back({.text = "<|start|>", .role = Role::kHeader});
    markers.push_back({.text = "<|channel|>", .role = Role::kHeader});
    // The prompt may end in the middle of a header: "<|start|>assistant".
    markers.push_back({.text = "to=functions.", .role = Role::kHeader});
  }
  if (parses_calls(options)) {
    for (const CallOpening& opening : format.openings) {
      markers.push_back({.text = opening.text, .role = Role::kOpening, .opening = &opening});
    }
    for (const std::string_view text : format.silent) {
      markers.push_back({.text = text, .role = Role::kSilent});
    }
  }
  if (!tags.open.empty()) {
    markers.push_back({.text = tags.open, .role = Role::kReasoningOpen});
    if (options.format.reasoning != ReasoningFamily::kNone) {
      markers.push_back({.text = tags.close, .role = Role::kReasoningClose});
    }
  }
  return markers;
}

// Reasoning may discuss markup. Only its own closing tag or special tokens end it.
std::vector<OutputParser::Marker> OutputParser::reasoning_markers(const Options& options) {
  const bool others_end_it = tool_call_format(options.format.tool_calls).markup_is_tokens;
  std::vector<Marker> markers = others_end_it ? content_markers(options) : std::vector<Marker>();
  const ReasoningTags tags = reasoning_tags(options.format.reasoning);
  for (const Marker& marker : {Marker{.text = tags.open, .role = Role::kReasoningOpen},
                               Marker{.text = tags.close, .role = Role::kReasoningClose}}) {
    const bool is_there = std::ranges::contains(markers, marker.text, &Marker::text);
    if (!marker.text.empty() && !is_there) markers.push_back(marker);
  }
  return markers;
}

MarkerScanner OutputParser::scanner_of(const std::vector<Marker>& markers) {
  std::vector<std::string_view> texts;
  texts.reserve(markers.size());
  for (const Marker& marker : markers) texts.push_back(marker.text);
  return MarkerScanner(std::move(texts));
}

OutputParser::OutputParser(Options options)
    : options_(std::move(options)),
      format_(tool_call_format(options_.format.tool_calls)),
      content_markers_(content_markers(options_)),
      reasoning_markers_(reasoning_markers(options_)),
      content_scanner_(scanner_of(content_markers_)),
      reasoning_scanner_(scanner_of(reasoning_markers_)),
      content_(Kind::kContent),
      reasoning_(Kind::kReasoning),
      calls_(std::make_unique<Calls>(*this)) {
  if (options_.starts_in_reasoning) start_reasoning();
}

OutputParser::~OutputParser() = default;

ChatDeltas OutputParser::push(std::string_view piece) {
  for (const char byte : piece) push_byte(byte);
  return take_deltas();
}

ChatDeltas OutputParser::take_deltas() {
  ChatDeltas deltas = std::exchange(deltas_, {});
  if (is_over_) return {};
  const auto end = std::ranges::find(deltas, Kind::kCallEnd, &ChatDelta::kind);
  if (!options_.ends_with_call || end == deltas.end()) return deltas;
  is_over_ = true;
  deltas.erase(std::next(end), deltas.end());
  return deltas;
}

void OutputParser::push_byte(char byte) {
  switch (state_) {
    case State::kContent: return push_content(byte);
    case State::kReasoning: return push_reasoning(byte);
    case State::kHeader: return push_header(byte);
    case State::kOpened: return push_opened(byte);
    case State::kCall: return push_call(byte);
  }
}

void OutputParser::push_content(char byte) {
  const bool may_be_bare = format_.may_be_bare && content_.is_empty() &&
                           !content_scanner_.holds_text() && !options_.tools.empty();
  if (may_be_bare && (byte == '{' || byte == '[')) return start_bare(byte);
  std::string text;
  const auto found = content_scanner_.push(byte, text);
  content_.push(text, deltas_);
  if (found) take_marker(content_markers_[*found]);
}

void OutputParser::start_bare(char byte) {
  opening_ = &kBareOpening;
  held_.clear();
  push_opened(byte);
}

bool OutputParser::is_meant(const Marker& marker) const {
  if (marker.role == Role::kHeader) return marker.text.starts_with('<') || content_.is_empty();
  const bool is_surprise =
      marker.role == Role::kReasoningOpen && options_.format.reasoning == ReasoningFamily::kNone;
  if (is_surprise) return content_.is_empty();
  if (format_.markup_is_tokens) return true;
  if (content_.in_code_block() || content_.ends_with_quote()) return false;
  // A silent text or an opening reasoning tag is markup only at the start or after other markup.
  // Elsewhere it is a quotation.
  const bool needs_markup = marker.role == Role::kSilent || marker.role == Role::kReasoningOpen;
  return !needs_markup || content_.is_empty();
}

void OutputParser::take_marker(const Marker& marker) {
  if (!is_meant(marker)) return content_.push(marker.text, deltas_);
  switch (marker.role) {
    case Role::kOpening: return start_opening(*marker.opening);
    case Role::kReasoningOpen: return start_reasoning();
    case Role::kHeader:
      content_.meet_markup();
      header_ = marker.text;
      state_ = State::kHeader;
      return;
    case Role::kSilent:
    case Role::kReasoningClose: content_.meet_markup(); return;
  }
}

void OutputParser::push_reasoning(char byte) {
  std::string text;
  const auto found = reasoning_scanner_.push(byte, text);
  reasoning_.push(text, deltas_);
  if (found) take_reasoning_marker(reasoning_markers_[*found]);
}

void OutputParser::take_reasoning_marker(const Marker& marker) {
  switch (marker.role) {
    case Role::kReasoningOpen:  // some models repeat the tag that the prompt opened
      if (!reasoning_.is_empty()) reasoning_.push(marker.text, deltas_);
      return;
    case Role::kReasoningClose: return start_content();
    case Role::kSilent: return reasoning_.meet_markup();
    case Role::kOpening: start_content(); return start_opening(*marker.opening);
    case Role::kHeader:
      if (!marker.text.starts_with('<')) return reasoning_.push(marker.text, deltas_);
      start_content();
      header_ = marker.text;
      state_ = State::kHeader;
      return;
  }
}

void OutputParser::push_header(char byte) {
  header_ += byte;
  if (header_.ends_with(kMessage)) return take_header();
  if (header_.size() < kOutputLimits.call_header_bytes_max) return;
  const std::string text = std::exchange(header_, {});
  state_ = State::kContent;
  content_.push(text, deltas_);
}

// A header: <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>
void OutputParser::take_header() {
  const std::string header = std::exchange(header_, {});
  const std::string_view tool = recipient(header);
  if (!tool.empty()) {
    calls_->start_reader();
    held_.clear();
    reader_ = std::make_unique<NamedJsonCall>(kHarmonyArguments, tool);
    state_ = State::kCall;
  } else if (header.contains("analysis")) {
    start_reasoning();
  } else {
    start_content();
  }
}

void OutputParser::start_reasoning() {
  content_.meet_markup();
  reasoning_.meet_markup();
  state_ = State::kReasoning;
}

void OutputParser::start_content() {
  reasoning_.meet_markup();
  content_.meet_markup();
  state_ = State::kContent;
}

void OutputParser::start_opening(const CallOpening& opening) {
  opening_ = &opening;
  held_ = opening.text;
  state_ = State::kOpened;
}

void OutputParser::push_opened(char byte) {
  if (is_space(byte) && held_.size() < kOutputLimits.held_space_bytes_max) {
    held_ += byte;
    return;
  }
  calls_->start_reader();
  reader_ = make_call_reader(*opening_, byte, options_.tools);
  if (reader_ == nullptr) {
    state_ = State::kContent;
    content_.push(std::exchange(held_, {}), deltas_);
    return push_byte(byte);
  }
  state_ = State::kCall;
  push_call(byte);
}

void OutputParser::push_call(char byte) {
  const CallReader::Step step = reader_->push(byte, *calls_);
  if (step == CallReader::Step::kTaken) {
    if (calls_->take_settled()) {
      held_.clear();
    } else if (!calls_->is_open()) {
      held_ += byte;
    }
    if (held_.size() <= kOutputLimits.call_held_bytes_max) return;
    return give_back_call();
  }
  if (step != CallReader::Step::kFailed) {
    reader_.reset();
    held_.clear();
    content_.meet_markup();
    state_ = State::kContent;
    if (step == CallReader::Step::kDoneBefore) push_byte(byte);
    return;
  }
  give_back_call();
  push_byte(byte);
}

// The reader has failed or held back too much. Text that it has not reported becomes content.
void OutputParser::give_back_call() {
  std::string text = calls_->is_open() ? reader_->untold() : std::string();
  reader_->finish(*calls_);
  const bool has_called = calls_->reader_has_called();
  if (has_called) content_.meet_markup();
  text += std::exchange(held_, {});
  reader_.reset();
  state_ = State::kContent;
  if (has_called && text.size() <= kReadAgainMax) {
    for (const char byte : text) push_byte(byte);
  } else {
    content_.push(text, deltas_);
  }
}

ChatDeltas OutputParser::finish() {
  switch (state_) {
    case State::kContent: content_.push(content_scanner_.take_held(), deltas_); break;
    case State::kReasoning: reasoning_.push(reasoning_scanner_.take_held(), deltas_); break;
    case State::kHeader: break;  // a header has no text for the client
    case State::kOpened: content_.push(std::exchange(held_, {}), deltas_); break;
    case State::kCall: {
      reader_->finish(*calls_);
      const std::string text = std::exchange(held_, {});
      if (calls_->reader_has_called()) {
        content_.meet_markup();  // text is the beginning of the call's closing markup
      } else {
        content_.push(text, deltas_);
      }
      break;
    }
  }
  state_ = State::kContent;
  reader_.reset();
  reasoning_.meet_markup();
  content_.finish(deltas_);
  return take_deltas();
}

}  // namespace slipstream
