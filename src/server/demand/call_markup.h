// CallMarkup: exactly how a model writes a call, including white space, as its chat template shows
// it. It is learned like a template's abilities: conversations that end with calls are rendered,
// and the texts around the names and arguments are cut out. They are used only if OutputParser
// reads them back. If the template writes no calls, the markup is the form in which tools were
// described to the model: that of conversation.cpp, or what its family is known to write.
//
// Threads: plain data.
// Errors:  kUnsupported if neither is known: no call that the parser reads could be demanded.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/template/chat_template.h"

namespace slipstream {

// Placeholders in a text of markup: any id or any number may stand there.
inline constexpr char kAnyId = '\x01';
inline constexpr char kAnyNumber = '\x02';

// Arguments written one by one:
// <first>key<json_open>value<next>key<text_open>value<text_close><close>
struct MemberMarkup {
  std::string first;
  std::string next;
  std::string close;
  std::string close_empty;  // directly after the name
  std::string json_open;
  std::string text_open;  // before a text that is written as it is
  std::string text_close;
  std::string text_end;  // what such a text cannot contain; if empty, texts are JSON
};

struct CallMarkup {
  std::string before_name;
  std::string after_name;
  std::optional<std::string> between = {};  // from a call to the next name; unset: only one call
  std::string after_last;
  std::optional<MemberMarkup> members = {};  // if not set, the arguments are a JSON object
};

[[nodiscard]] Result<CallMarkup> call_markup_of(const ChatTemplate& chat);

}  // namespace slipstream
