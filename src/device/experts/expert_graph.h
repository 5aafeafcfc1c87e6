// ExpertGraph: computes a graph whose expert weights are streamed.
//
// The graph runs on the CPU backend in parts. A part ends where a layer's router has chosen
// experts, because only then is it known which to read. They are read, and the stock kernel
// multiplies with the slots that hold them, with slot numbers in place of expert numbers. If they
// do not all fit, a multiplication is done in turns: the rows of a turn's experts are gathered,
// multiplied and put in their places. Each row is computed on its own, so the result is the same to
// the last bit whatever the size of the cache. With has_products our own kernels multiply, as they
// do with resident experts.
//
// Threads: owned by one backend.
// Errors:  kIo and those of ExpertStore::prepare, as a status and a line in the log.
#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/experts/expert_buffer.h"
#include "device/experts/lookahead_trial.h"
#include "device/graph/custom_nodes.h"
#include "device/graph/product_nodes.h"

namespace slipstream::turbo {

// While a part is computed, the experts of the next layer can be read ahead. To find them, the next
// layer's router is computed early, with this layer's input, which changes little from layer to
// layer. Whether that pays depends on model and disk, so it is tried now and then and kept while it
// is faster.
class ExpertGraph {
 public:
  // Whether any node multiplies with streamed experts.
  [[nodiscard]] static bool concerns(ggml_cgraph* graph);

  // cpu: the backend that computes the nodes.
  [[nodiscard]] ggml_status compute(ggml_backend_t cpu, ggml_cgraph* graph, bool has_products);

 private:
  [[nodiscard]] ggml_status compute_part();
  [[nodiscard]] Result<void> choose(const ggml_tensor* multiplication, ExpertLayer& layer,
                                    ExpertStore& store);
  [[nodiscard]] ggml_status multiply(ggml_tensor* multiplication, ExpertLayer& layer,
                                     ExpertMatrix& matrix, ExpertStore& store);
  void add_in_slots(ggml_tensor* multiplication, ExpertMatrix& matrix, const ExpertLayer& layer);
  [[nodiscard]] ProductKind kind_of(const ggml_tensor* multiplication,
                                    const ExpertLayer& layer) const;
  void add_product(ggml_tensor* product, ProductKind kind, ggml_context* context,
                   std::vector<ggml_tensor*>& nodes);
  [[nodiscard]] ggml_status multiply_turn(const ggml_tensor* multiplication, ExpertMatrix& matrix,
                                          const ExpertLayer& layer, const Turn& turn);
  void look_ahead(const ggml_tensor* multiplication, int layer, ExpertStore& store);

  ggml_backend_t cpu_ = nullptr;
  ggml_context_ptr context_;
  std::vector<ggml_tensor*> part_;       // nodes not computed yet
  std::map<int, ggml_tensor*> routers_;  // the router's weights, by layer

  // These belong to the layer whose experts were chosen last.
  const ggml_tensor* chosen_for_ = nullptr;  // the tensor of expert numbers
  ExpertLayer* chosen_layer_ = nullptr;
  std::vector<std::int32_t> choices_;   // the chosen experts, by token and rank
  std::vector<std::int32_t> slot_ids_;  // the slots of those that are computed next
  ggml_tensor* slot_ids_tensor_ = nullptr;
  std::vector<int> needed_;  // each chosen expert once

  std::vector<std::byte> gathered_;
  std::vector<float> products_;
  bool has_products_ = false;
  CustomNodes custom_nodes_;
  ProductNodes product_nodes_;
  LookaheadTrial trial_;
};

// The experts with the largest logits of each token, each expert once. logits: [token][expert].
// n_chosen: how many each token chooses, if there are as many.
[[nodiscard]] std::vector<int> likely_experts(std::span<const float> logits, std::size_t n_experts,
                                              std::size_t n_chosen);

}  // namespace slipstream::turbo
