#include "server/recall/rescue.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "server/recall/conversation_search.h"
#include "server/recall/message_text.h"
#include "server/recall/recall_limits.h"
#include "server/recall/turn_cut.h"

namespace slipstream {
namespace {

constexpr std::string_view kHeading = "From earlier in this conversation:\n";
constexpr std::size_t kHeadingTokens = 16;
constexpr std::size_t kMessageTokens = 8;  // that a template writes around a message

std::string_view who_said(const Json& message) {
  if (is_said_by(message, "user")) return "User";
  if (is_said_by(message, "assistant")) return "Assistant";
  return is_said_by(message, "tool") ? "Tool" : "System";
}

// What the message says, calls too. Reasoning is left out: most templates leave out that of earlier
// turns.
std::string said_in(const Json& message) {
  std::string text = text_of_message(message);
  const Json* calls = member(message, "tool_calls");
  if (calls == nullptr || !calls->is_array()) return text;
  for (const Json& call : *calls) {
    const Json* function = member(call, "function");
    if (function == nullptr) continue;
    const Json* name = member(*function, "name");
    const Json* arguments = member(*function, "arguments");
    if (!text.empty()) text += '\n';
    text += name != nullptr && name->is_string() ? name->get_ref<const std::string&>() : "?";
    if (arguments == nullptr) continue;
    text += arguments->is_string() ? arguments->get_ref<const std::string&>() : dump(*arguments);
  }
  return text;
}

ApiError too_long(const std::string& what) {
  return {.message = what + ". Leave out its oldest messages, or sum them up",
          .param = "messages",
          .code = "context_length_exceeded"};
}

struct Said {
  std::string_view who;
  std::string text;
  std::size_t n_added = 0;  // bytes in front that are not theirs
  std::size_t n_tokens = 0;

  [[nodiscard]] std::string_view own() const { return std::string_view(text).substr(n_added); }
  [[nodiscard]] std::size_t n_own_tokens() const {
    return n_added == 0 ? n_tokens : n_tokens * own().size() / text.size();
  }
};

// A conversation, counted.
struct Conversation {
  Turns turns;
  std::vector<Said> said = {};
  std::size_t n_front = 0;  // tokens in front of the turns

  [[nodiscard]] std::size_t end_of(std::size_t turn) const {
    return turn + 1 < turns.begins.size() ? turns.begins[turn + 1] : said.size();
  }
};

ApiResult<Conversation> read(const RescueInput& input) {
  Conversation result{.turns = turns_of(input.messages)};
  if (result.turns.begins.size() > kRecallLimits.turns_max) {
    return std::unexpected(
        too_long(format_text("The conversation has {} turns, more than the {} that are searched",
                             result.turns.begins.size(), kRecallLimits.turns_max)));
  }
  const std::size_t n_bytes_max =
      kRecallLimits.windows_max * kRecallLimits.bytes_per_token_max * input.n_context;
  std::size_t n_bytes = 0;
  for (const Json& message : input.messages) {
    const std::size_t i = result.said.size();
    result.said.push_back({.who = who_said(message),
                           .text = said_in(message),
                           .n_added = i < input.n_added.size() ? input.n_added[i] : 0});
    n_bytes += result.said.back().text.size();
  }
  if (n_bytes > n_bytes_max) {
    return std::unexpected(too_long(format_text(
        "The conversation has {} bytes of text, more than the {} of {} contexts of {} tokens",
        n_bytes, n_bytes_max, kRecallLimits.windows_max, input.n_context)));
  }
  return result;
}

// Most conversations are short. A token is at least a byte.
bool is_short(const Conversation& conversation, std::size_t n_tokens_max) {
  std::size_t n = 0;
  for (const Said& said : conversation.said) n += said.text.size() + 2 * kMessageTokens;
  return n <= n_tokens_max;
}

ApiResult<void> count(const RescueInput& input, Conversation& conversation) {
  const std::size_t n_max = kRecallLimits.windows_max * input.n_context;
  std::size_t n = 0;
  for (std::size_t i = 0; i < conversation.said.size(); ++i) {
    Said& said = conversation.said[i];
    const Result<std::size_t> n_tokens = input.count_tokens(said.text);
    if (!n_tokens) return refuse("messages", n_tokens.error().message);
    said.n_tokens = *n_tokens;
    n += *n_tokens + kMessageTokens;
    if (i < conversation.turns.n_front) conversation.n_front = n;
    if (n > n_max) {
      return std::unexpected(too_long(
          format_text("The conversation has more than {} tokens, {} times the context of {}", n_max,
                      kRecallLimits.windows_max, input.n_context)));
    }
  }
  return {};
}

// Goes through a conversation from its first message on, as the requests did that had more and more
// of it.
class Replay {
 public:
  struct Recalled {
    std::size_t turn;
    std::string text;
    std::vector<ConversationSearch::PieceId> pieces;
  };
  Replay(const Conversation& conversation, std::size_t n_tokens_max, std::size_t n_recalled_max)
      : conversation_(conversation),
        n_recalled_max_(std::min(n_recalled_max, n_tokens_max / 4)),
        cut_(n_tokens_max, n_recalled_max_) {
    for (std::size_t turn = 0; turn < conversation.turns.begins.size(); ++turn) play(turn);
  }

  [[nodiscard]] std::size_t n_dropped() const { return cut_.n_dropped(); }
  [[nodiscard]] std::size_t n_tokens() const { return cut_.n_tokens(); }
  // Of turns that stayed.
  [[nodiscard]] const std::deque<Recalled>& recalled() const { return recalled_; }

 private:
  void play(std::size_t turn) {
    cut_.begin_turn();
    const std::size_t begin = conversation_.turns.begins[turn];
    for (std::size_t i = begin; i < conversation_.end_of(turn); ++i) {
      cut_.add(conversation_.said[i].n_tokens + kMessageTokens);
      while (n_searched_ < cut_.n_dropped()) let_leave(n_searched_++);
      if (i == begin && conversation_.said[i].who == "User") recall(turn);
    }
  }

  void let_leave(std::size_t turn) {
    while (!recalled_.empty() && recalled_.front().turn <= turn) {
      for (const ConversationSearch::PieceId id : recalled_.front().pieces) is_shown_[id] = false;
      recalled_.pop_front();
    }
    if (n_recalled_max_ == 0) return;
    search_.begin_turn();
    for (std::size_t i = conversation_.turns.begins[turn]; i < conversation_.end_of(turn); ++i) {
      const Said& said = conversation_.said[i];
      search_.add(said.who, said.own(), said.n_own_tokens());
    }
    is_shown_.resize(search_.n_pieces());
  }

  void recall(std::size_t turn) {
    if (search_.n_pieces() == 0) return;
    Recalled found{.turn = turn, .text = {}, .pieces = {}};
    double n_tokens = kHeadingTokens;
    const Said& question = conversation_.said[conversation_.turns.begins[turn]];
    for (const ConversationSearch::PieceId id : search_.find(question.own())) {
      const double n_more = search_.piece(id).n_tokens;
      if (n_tokens + n_more > static_cast<double>(n_recalled_max_) || is_shown_[id]) continue;
      n_tokens += n_more;
      found.pieces.push_back(id);
      is_shown_[id] = true;
    }
    if (found.pieces.empty()) return;
    std::ranges::sort(found.pieces);  // as they were said
    found.text = kHeading;
    for (const ConversationSearch::PieceId id : found.pieces) found.text += search_.piece(id).text;
    recalled_.push_back(std::move(found));
    cut_.add_recalled(static_cast<std::size_t>(std::ceil(n_tokens)));
  }

  const Conversation& conversation_;
  const std::size_t n_recalled_max_;
  TurnCut cut_;
  ConversationSearch search_;
  std::size_t n_searched_ = 0;  // turns that left and can be found
  std::deque<Recalled> recalled_;
  std::vector<bool> is_shown_;  // the pieces in them
};

Json messages_of(const Json& all, const Turns& turns, const Replay& replay) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < turns.n_front; ++i) messages.push_back(all[i]);
  const std::size_t begin = turns.begins[replay.n_dropped()];
  const std::size_t n_front = messages.size();
  for (std::size_t i = begin; i < all.size(); ++i) messages.push_back(all[i]);
  for (const Replay::Recalled& one : replay.recalled()) {
    put_before_content(messages[n_front + turns.begins[one.turn] - begin], one.text);
  }
  return messages;
}

std::size_t recalled_max(const RescueOptions& options, std::size_t n_context) {
  constexpr std::size_t kUsual = 256;
  return options.n_recalled_max.value_or(std::max(n_context / 16, std::min(kUsual, n_context / 8)));
}

std::size_t less(std::size_t n, std::size_t taken) { return n > taken ? n - taken : 0; }

}  // namespace

ApiResult<Rescued> Rescue::rescue(RescueInput input) const {
  ApiResult<Conversation> conversation = read(input);
  if (!conversation) return std::unexpected(conversation.error());
  const std::size_t n_prompt_max = less(input.n_context, input.n_answer);
  const Turns& turns = conversation->turns;
  if (turns.begins.empty() || is_short(*conversation, less(n_prompt_max, input.n_beside))) {
    return Rescued{.messages = std::move(input.messages)};
  }
  if (const auto counted = count(input, *conversation); !counted) {
    return std::unexpected(counted.error());
  }
  const std::size_t n_turns_max = less(n_prompt_max, input.n_beside + conversation->n_front);
  // Templates write more than was counted here: then it is tried again with less.
  for (const double share : {1.0, 0.85, 0.7, 0.5, 0.3, 0.0}) {
    const Replay replay(*conversation,
                        static_cast<std::size_t>(share * static_cast<double>(n_turns_max)),
                        recalled_max(options_, input.n_context));
    const bool is_last_turn = replay.n_dropped() + 1 == turns.begins.size();
    if (replay.n_dropped() == 0 && (is_last_turn || 2 * replay.n_tokens() <= n_turns_max)) break;
    Json messages = messages_of(input.messages, turns, replay);
    if (share == 0 || input.fits(messages)) {
      return Rescued{.messages = std::move(messages), .n_turns_dropped = replay.n_dropped()};
    }
  }
  return Rescued{.messages = std::move(input.messages)};
}

}  // namespace slipstream
