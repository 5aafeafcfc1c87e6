#include "device/attention/cold_pieces.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "device/attention/chunk_choice.h"
#include "device/attention/chunk_pass.h"
#include "device/attention/piece_context.h"
#include "device/attention/piece_queries.h"
#include "device/attention/piece_result.h"

namespace slipstream::turbo {
namespace {

// How many chunks a thread holds at once. They are read together.
constexpr std::size_t kHeldChunks = 128;

bool is_cold(CacheTensor* side) {
  return side->compressed() != nullptr && side->compressed()->is_cold();
}

// Chunks of a piece that are held on both sides, or about to be.
class Group {
 public:
  // Starts to read those from `first` on that the queries see.
  [[nodiscard]] static Result<Group> start(const PieceContext& context, const ChunkPass& pass,
                                           int first) {
    Group group(first);
    std::vector<int> chunks;
    const int end = context.piece.end_chunk;
    for (; group.end_ < end && chunks.size() < kHeldChunks;
         group.end_ = pass.next_seen(group.end_ + 1)) {
      chunks.push_back(group.end_);
    }
    const std::array sides = {context.task.keys, context.task.values};
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (!is_cold(sides[i])) continue;
      Result<ColdChunks::Held> started = sides[i]->compressed()->start_reading(
          context.task.first_stream + context.piece.stream, context.piece.kv_head, chunks);
      if (!started) return std::unexpected(std::move(started.error()));
      group.held_[i] = std::move(*started);
    }
    return group;
  }

  [[nodiscard]] int first() const { return first_; }
  [[nodiscard]] int end() const { return end_; }

  // Waits until all are in memory. next: the one that was started behind it, or null.
  [[nodiscard]] Result<void> finish(Group* next) {
    using Sides = std::span<ColdChunks::Held>;
    return ColdChunks::Held::finish(held_, next == nullptr ? Sides() : Sides(next->held_));
  }

 private:
  explicit Group(int first) : first_(first), end_(first) {}

  int first_;
  int end_;
  std::array<ColdChunks::Held, 2> held_;  // of keys and values
};

// A piece that has chosen what it reads.
struct ChosenPiece {
  ChosenPiece(const AttentionTask& task, const Piece& piece, PieceScratch& scratch)
      : context(task, piece, scratch), queries(context), pass(context, queries) {
    choose_chunks(context, queries);
  }
  ChosenPiece(const ChosenPiece&) = delete;
  ChosenPiece& operator=(const ChosenPiece&) = delete;

  [[nodiscard]] Result<Group> start(int first) const { return Group::start(context, pass, first); }
  [[nodiscard]] Result<void> compute(Group& group, Group* next) {
    if (Result<void> finished = group.finish(next); !finished) return finished;
    pass.process(group.first(), group.end());
    return {};
  }

  PieceContext context;
  PieceQueries queries;
  ChunkPass pass;
};

}  // namespace

bool has_cold_codes(const AttentionTask& task) {
  return is_cold(task.keys) || is_cold(task.values);
}

Result<void> run_cold_pieces(const AttentionTask& task, std::span<const Piece> pieces) {
  std::array<std::optional<ChosenPiece>, 2> chosen;  // the one that is computed, and the next
  std::optional<Group> group;                        // that is computed next
  ChosenPiece* last = nullptr;                       // whose group it is
  const auto compute_last = [&](Group* next) -> Result<void> {
    if (last == nullptr) return {};
    if (Result<void> computed = last->compute(*group, next); !computed) return computed;
    PieceResult(last->context, last->queries).finish();
    return {};
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ChosenPiece& piece = chosen[i % 2].emplace(task, pieces[i], PieceScratch::of_thread(i % 2));
    Result<Group> first = piece.start(piece.pass.next_seen(pieces[i].first_chunk));
    if (!first) return std::unexpected(std::move(first.error()));
    if (Result<void> computed = compute_last(&*first); !computed) return computed;
    group = std::move(*first);
    last = &piece;
    while (group->end() < pieces[i].end_chunk) {
      Result<Group> next = piece.start(group->end());
      if (!next) return std::unexpected(std::move(next.error()));
      if (Result<void> computed = piece.compute(*group, &*next); !computed) return computed;
      group = std::move(*next);
    }
  }
  return compute_last(nullptr);
}

}  // namespace slipstream::turbo
