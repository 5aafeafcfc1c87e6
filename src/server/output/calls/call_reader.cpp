#include "server/output/calls/call_reader.h"

#include "server/ascii.h"
#include "server/output/calls/json_calls.h"
#include "server/output/calls/named_json_call.h"
#include "server/output/calls/python_calls.h"
#include "server/output/calls/xml_calls.h"

namespace slipstream {

std::unique_ptr<CallReader> make_call_reader(const CallOpening& opening, char first,
                                             const ToolSet& tools) {
  const bool is_json = first == '{' || first == '[';
  if (opening.json != nullptr && is_json) {
    return std::make_unique<JsonCalls>(*opening.json, tools);
  }
  if (opening.xml != nullptr) {
    return std::make_unique<XmlCalls>(*opening.xml, opening.inside_call, tools);
  }
  if (opening.named != nullptr && !is_json) return std::make_unique<NamedJsonCall>(*opening.named);
  if (opening.python != nullptr) return std::make_unique<PythonCalls>(*opening.python);
  return nullptr;
}

CallReader::Step CallClosing::push(char byte) {
  using Step = CallReader::Step;
  if (n_matched_ < text_.size() && byte == text_[n_matched_]) {
    return ++n_matched_ == text_.size() ? Step::kDone : Step::kTaken;
  }
  if (n_matched_ > 0) return Step::kFailed;
  if (text_.empty()) return Step::kDoneBefore;
  const bool is_surplus = is_space(byte) || byte == '}' || byte == ']' || byte == '`';
  return is_surplus ? Step::kTaken : Step::kFailed;
}

}  // namespace slipstream
