// CallMarkup: how a model writes a call down to the last space, as its own chat template shows it.
//
// Found out as a template's abilities are: conversations that end with calls are rendered, and what
// stands around the names and arguments is cut out. What was cut out is only used if our parser
// reads it back. Where the template writes no calls, it is the form in which tools were described
// to the model: ours (conversation.cpp), or what its family is known to write.
//
// Threads: plain data.
// Errors:  kUnsupported where neither is known: no call that the parser reads could be demanded.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/template/chat_template.h"

namespace slipstream {

// In a text of markup, any id or any number may stand where one of these does.
inline constexpr char kAnyId = '\x01';
inline constexpr char kAnyNumber = '\x02';

// Arguments one by one: <first>key<json_open>value<next>key<text_open>value<text_close><close>
struct MemberMarkup {
  std::string first;
  std::string next;
  std::string close;
  std::string close_empty;  // right after the name
  std::string json_open;
  std::string text_open;  // before a text that stands as it is
  std::string text_close;
  std::string text_end;  // what such a text cannot contain; empty: texts are JSON too
};

struct CallMarkup {
  std::string before_name;
  std::string after_name;
  std::optional<std::string> between = {};  // one call and the next's name; none: there is no next
  std::string after_last;
  std::optional<MemberMarkup> members = {};  // none: the arguments are a JSON object
};

[[nodiscard]] Result<CallMarkup> call_markup_of(const ChatTemplate& chat);

}  // namespace slipstream
