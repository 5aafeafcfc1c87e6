// ReadingQueue: texts that wait to be read, and whose turn is next.
//
// Clients take turns by tokens, those with a higher priority with more of them, and so do the
// requests of one client. So a long request costs others a batch, not its length.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/embedding/text_reader.h"

namespace slipstream {

// The texts of one request. What is not const belongs to the worker until the request has ended.
struct ReadingRequest {
  std::string client;
  int priority = 1;
  std::vector<std::vector<Token>> texts;  // none is empty
};

class ReadingQueue {
 public:
  // The number of a text in its request.
  struct Text {
    std::shared_ptr<const ReadingRequest> request;
    std::size_t idx;
  };
  // Whether a batch with so many texts and tokens has room for a text of so many.
  using HasRoom = std::function<bool(std::size_t n_texts, std::size_t n_tokens, std::size_t n)>;

  // REQUIRES: the request has texts.
  void add(std::shared_ptr<const ReadingRequest> request);
  // What of it waits is forgotten.
  void remove(const ReadingRequest& request);
  // Takes the next texts that fit into a batch; at least one, unless none waits.
  [[nodiscard]] std::vector<Text> take_batch(const HasRoom& has_room);
  [[nodiscard]] std::size_t n_texts() const { return n_texts_; }

 private:
  struct Waiting {
    std::shared_ptr<const ReadingRequest> request;
    std::size_t next = 0;  // text
    double served = 0;     // tokens of it, and what others had before it came
  };
  struct Line {  // of one client
    std::deque<Waiting> requests;
    double served = 0;  // the same, by its priority
  };
  using Lines = std::map<std::string, Line, std::less<>>;

  [[nodiscard]] static std::deque<Waiting>::iterator next_of(Line& line);
  void forget(Lines::iterator line, const std::deque<Waiting>::iterator& request);

  Lines lines_;        // none is empty
  double served_ = 0;  // of the line that had the last turn: where new ones begin
  std::size_t n_texts_ = 0;
};

}  // namespace slipstream
