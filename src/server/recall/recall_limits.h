// RecallLimits: how long a conversation may be that is longer than its window.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct RecallLimits {
  // What an index is asked for one message. Messages have many words that no file has, and a model
  // leaves what is of no use to it.
  int retrieved_max = 16;
  double retrieved_share_min = 0.2;
  // Beside the best place others are worth their tokens only if they come near it.
  double retrieved_score_share_min = 0.4;

  // A longer conversation is refused. All of it is counted, and what left it is searched, for each
  // request.
  std::size_t windows_max = 16;         // in tokens of the model's context
  std::size_t bytes_per_token_max = 8;  // known before tokens are counted; text has 3 to 5
  std::size_t turns_max = 4096;         // each may have to be searched for
  // What is searched comes in pieces of about this size.
  std::size_t piece_bytes = 480;
  // One search: bytes of the question that count, places of its words that are looked at (the
  // rarest words first), and pieces that are found.
  std::size_t question_bytes_max = std::size_t{4} << 10;
  std::size_t places_max = 20'000;
  std::size_t found_max = 64;
};

inline constexpr RecallLimits kRecallLimits{};

}  // namespace slipstream
