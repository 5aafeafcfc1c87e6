// ResponseOutput: the items of a response, as the model writes them: reasoning, messages, calls.
//
// The last item may be open: more of it comes.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/output/chat_delta.h"

namespace slipstream {

class ResponseOutput {
 public:
  enum class Kind : std::uint8_t { kReasoning, kMessage, kCall };
  enum class Status : std::uint8_t { kInProgress, kCompleted, kIncomplete };
  struct Item {
    Kind kind;
    std::string id;
    std::string text = {};     // or the arguments of a call
    std::string name = {};     // of what is called
    std::string call_id = {};  // by which its result is known
    Status status = Status::kInProgress;
  };

  // spaces: namespaces by the names of their functions.
  ResponseOutput(std::string response_id, std::map<std::string, std::string> spaces);

  // Whether this delta is of another item than the open one.
  [[nodiscard]] bool begins_item(const ChatDelta& delta) const;
  void begin(const ChatDelta& delta);
  void append(const std::string& text) { items_.back().text += text; }
  void close(bool is_complete);

  [[nodiscard]] bool is_open() const {
    return !items_.empty() && items_.back().status == Status::kInProgress;
  }
  [[nodiscard]] const Item& last() const { return items_.back(); }
  [[nodiscard]] std::size_t last_idx() const { return items_.size() - 1; }

  // As the API has them: an item, its only part, all items.
  [[nodiscard]] Json item(const Item& item) const;
  [[nodiscard]] static Json part(const Item& item);
  [[nodiscard]] Json all() const;

 private:
  const std::string response_id_;
  const std::map<std::string, std::string> spaces_;
  std::vector<Item> items_;
};

}  // namespace slipstream
