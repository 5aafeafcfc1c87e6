// When memory runs out in a thread of ggml, the computation fails and the process goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "device/fit/small_graph_test_support.h"

namespace {
std::atomic<bool> has_no_memory = false;
}  // namespace

// Replaces the library's operator new for aligned memory, which the scratch of threads is made of
// (attention/scratch.h).
void* operator new(std::size_t n_bytes, std::align_val_t alignment) {
  const auto line = static_cast<std::size_t>(alignment);
  void* memory =
      has_no_memory ? nullptr : std::aligned_alloc(line, (n_bytes + line - 1) / line * line);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*n_bytes*/, std::align_val_t /*a*/) noexcept {
  std::free(memory);
}

namespace slipstream::turbo {
namespace {

TEST(OutOfMemory, EndsOneComputation) {
  SmallGraph graph(rope(GGML_ROPE_TYPE_NEOX), 1, "turbo4");
  const std::vector<float> wanted = graph.compute();
  bool is_out_of_memory = false;
  // A new thread has no scratch memory yet, nor have the threads that it computes with.
  std::jthread([&] {
    ShadowGraph shadow;
    const Result<ggml_cgraph*> built = shadow.build(graph.graph, {});
    has_no_memory = true;
    ggml_backend_graph_compute(graph.backend(), built.value());
    has_no_memory = false;
    is_out_of_memory = shadow.end() == GGML_STATUS_ALLOC_FAILED;
  }).join();
  EXPECT_TRUE(is_out_of_memory);
  EXPECT_EQ(graph.compute(), wanted);  // the next computation is not affected
}

}  // namespace
}  // namespace slipstream::turbo
