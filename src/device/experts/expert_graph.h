// ExpertGraph: computes a graph whose expert weights are streamed.
//
// The graph runs on the CPU backend in parts. A part ends where a layer's router has chosen: only
// then is it known which experts to read. They are read, and the layer's multiplications become the
// stock kernel's on the slots that hold them, with the experts' numbers replaced by slots'. If they
// do not all fit, a multiplication is done in turns: the rows of a turn's experts are gathered,
// multiplied and put in their places. Rows are computed one by one, so that the result is the same
// to the last bit, whatever the size of the cache.
//
// While a part is computed, the next layer's experts can be read: its router is asked already now,
// with this layer's input, which changes little from layer to layer. Whether that pays depends on
// model and disk, so it is tried now and then and kept while it is faster.
//
// Threads: owned by one backend. Errors: kIo and those of ExpertStore::prepare, as a status and a
// line in the log.
#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "device/experts/expert_buffer.h"
#include "device/experts/lookahead_trial.h"

namespace slipstream::turbo {

class ExpertGraph {
 public:
  // Whether any node multiplies with streamed experts.
  [[nodiscard]] static bool concerns(ggml_cgraph* graph);

  // `cpu` computes what is not ours.
  [[nodiscard]] ggml_status compute(ggml_backend_t cpu, ggml_cgraph* graph);

 private:
  [[nodiscard]] ggml_status compute_part();
  [[nodiscard]] Result<void> choose(const ggml_tensor* multiplication, ExpertLayer& layer,
                                    ExpertStore& store);
  [[nodiscard]] ggml_status multiply(ggml_tensor* multiplication, ExpertLayer& layer,
                                     ExpertMatrix& matrix, ExpertStore& store);
  void add_in_slots(ggml_tensor* multiplication, ExpertMatrix& matrix, int n_slots);
  [[nodiscard]] ggml_status multiply_turn(const ggml_tensor* multiplication, ExpertMatrix& matrix,
                                          int n_slots, const Turn& turn);
  void look_ahead(const ggml_tensor* multiplication, int layer, ExpertStore& store);

  ggml_backend_t cpu_ = nullptr;
  ggml_context_ptr context_;
  std::vector<ggml_tensor*> part_;       // nodes not computed yet
  std::map<int, ggml_tensor*> routers_;  // by layer: the weights of its router

  // Of the layer whose experts were chosen last.
  const ggml_tensor* chosen_for_ = nullptr;  // the tensor of expert numbers
  ExpertLayer* chosen_layer_ = nullptr;
  std::vector<std::int32_t> choices_;   // by token and rank: the expert
  std::vector<std::int32_t> slot_ids_;  // its slot, of what is computed next
  std::vector<int> needed_;             // each expert once

  std::vector<std::byte> gathered_;
  std::vector<float> products_;
  LookaheadTrial trial_;
};

}  // namespace slipstream::turbo
