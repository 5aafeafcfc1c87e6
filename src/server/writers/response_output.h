// ResponseOutput: collects the model's output as the items of a response: reasoning, messages and
// function calls. The last item may be open, which means that more of its text will come.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
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
    std::string text = {};     // for a call: its arguments
    std::string name = {};     // of the function that is called
    std::string call_id = {};  // links the call to its result
    Status status = Status::kInProgress;
    Json annotations = Json::array();
  };

  // spaces: ResponseTools::spaces.
  ResponseOutput(std::string response_id, std::map<std::string, std::string> spaces);

  // REQUIRES: there is no item yet.
  void set_response_id(const std::string& id) { response_id_ = id; }

  // Whether this delta belongs to a new item.
  [[nodiscard]] bool begins_item(const ChatDelta& delta) const;
  void begin(const ChatDelta& delta);
  void append(const std::string& text) { items_.back().text += text; }
  void annotate(Json annotations) { items_.back().annotations = std::move(annotations); }
  void close(bool is_complete);

  [[nodiscard]] bool is_open() const {
    return !items_.empty() && items_.back().status == Status::kInProgress;
  }
  [[nodiscard]] const Item& last() const { return items_.back(); }
  [[nodiscard]] std::size_t last_idx() const { return items_.size() - 1; }

  // JSON of an item, of its only content part, and of all items.
  [[nodiscard]] Json item(const Item& item) const;
  [[nodiscard]] static Json part(const Item& item);
  [[nodiscard]] Json all() const;

 private:
  std::string response_id_;
  const std::map<std::string, std::string> spaces_;
  std::vector<Item> items_;
};

}  // namespace slipstream
