// ExpertLayer: the experts of one layer, their place in the model's file and the slots that hold
// some of them in memory.
//
// A batch names the experts that it needs and gets turns, each a list of experts with their slots.
// If all experts fit at once, there is one turn. Otherwise the experts that are in memory come
// first. The rest is read into some of the slots, in turns that alternate between the two halves of
// these slots, so that a turn is read while the previous one is computed. Each expert is read at
// most once per batch and matrix.
//
// Threads: owned by the store, whose lock protects it.
// Errors:  kIo from reads; the slots that were read into are then empty.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "base/slab_reader.h"
#include "contract/expert_counters.h"
#include "device/experts/expert_slots.h"

namespace slipstream::turbo {

// The matrices of one kind (gate, up, down, or gate and up in one) of all experts of a layer.
struct ExpertMatrix {
  const void* address;  // identifies it in graphs; there is no memory there
  std::string name;
  const DataFile* file;
  std::uint64_t offset;    // of expert 0 in the file
  std::size_t slab_bytes;  // bytes of one expert
  Mapping arena;           // n_slots * slot_bytes()

  // A slot has room for all disk blocks that a slab lies in.
  [[nodiscard]] std::size_t slot_bytes() const;
  // The offset of the slab in its slot. It is the same in all slots, because kernels step from one
  // to the next.
  [[nodiscard]] std::size_t start_in_slot() const;
  [[nodiscard]] FilePiece piece(int expert, int slot);
  // Called after piece() was read: moves the slab to start_in_slot(), if experts start at different
  // offsets within blocks.
  void settle(int expert, int slot);
};

struct Placement {
  int expert;
  int slot;
  bool is_read;  // has to be read first
};
using Turn = std::vector<Placement>;

class ExpertLayer {
 public:
  ExpertLayer(int layer, int n_experts) : layer_(layer), n_experts_(n_experts) {}

  void add(ExpertMatrix matrix) { matrices_.push_back(std::move(matrix)); }
  [[nodiscard]] int layer() const { return layer_; }
  [[nodiscard]] int n_experts() const { return n_experts_; }
  [[nodiscard]] int n_slots() const { return slots_ ? slots_->n_slots() : 0; }
  [[nodiscard]] std::size_t bytes_per_slot() const;
  [[nodiscard]] std::vector<ExpertMatrix>& matrices() { return matrices_; }
  [[nodiscard]] ExpertCounters& counters() { return counters_; }
  [[nodiscard]] const std::vector<std::uint64_t>& n_uses() const { return n_uses_; }
  [[nodiscard]] const ExpertSlots& slots() const { return *slots_; }

  // Allocates memory for n_slots experts. Called once, before anything else.
  [[nodiscard]] Result<void> allocate(int n_slots, CachePolicy policy);
  void pin(int expert) { slots_->pin(expert); }

  // Chooses slots for the experts that a batch needs, each named once. The plan is valid until the
  // next call.
  [[nodiscard]] const std::vector<Turn>& plan(std::span<const int> experts, SlabReader& reader);
  [[nodiscard]] const std::vector<Turn>& current_plan() const { return turns_; }
  // Called when one matrix has gone through all turns of a plan with several.
  void finish_matrix() { ++n_matrices_done_; }

  // Read the experts of a turn that are not in memory, for one matrix or for all of them.
  [[nodiscard]] SlabReader::Ticket start_reads(const Turn& turn, ExpertMatrix& matrix,
                                               SlabReader& reader);
  [[nodiscard]] Result<void> finish_reads(const Turn& turn, ExpertMatrix& matrix,
                                          SlabReader::Ticket ticket, SlabReader& reader);
  [[nodiscard]] Result<void> read_all(const Turn& turn, SlabReader& reader);

  // Starts to read experts that a later batch may need. plan() waits for them.
  void guess(std::span<const int> experts, SlabReader& reader);

 private:
  void plan_in_turns(std::span<const int> experts);
  void forget_unfinished_turns();
  void finish_guess(SlabReader& reader);
  [[nodiscard]] Result<void> wait(SlabReader::Ticket ticket, SlabReader& reader);

  int layer_;
  int n_experts_;
  std::vector<ExpertMatrix> matrices_;
  std::unique_ptr<ExpertSlots> slots_;  // null before allocate()
  std::vector<std::uint64_t> n_uses_;   // by expert
  std::vector<Turn> turns_;
  std::size_t n_matrices_done_ = 0;
  Turn guessed_;
  SlabReader::Ticket guess_ticket_ = 0;
  std::vector<FilePiece> pieces_;  // a member only to keep its memory
  ExpertCounters counters_;
};

}  // namespace slipstream::turbo
