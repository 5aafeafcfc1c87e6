// What models of one process share, while some load and others decode. The thread sanitizer is the
// judge (preset "tsan").
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "device/experts/expert_buffer.h"
#include "device/fit/fit_run.h"
#include "device/fit/profile.h"
#include "device/fit/small_graph_test_support.h"

namespace slipstream::turbo {
namespace {

// One thread: those of OpenMP are strangers to the sanitizer.
void set_one_thread(ggml_backend_t backend) {
  const auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
      ggml_backend_dev_backend_reg(ggml_backend_get_device(backend)),
      "ggml_backend_set_n_threads"));
  set(backend, 1);
}

TEST(TwoModels, LoadAndDecodeAtOnce) {
  constexpr int kRounds = 8;
  ggml_backend_load_all();
  const auto run_model = [](const char* scheme) {
    for (int round = 0; round < kRounds; ++round) {
      set_scheme(parse_scheme(scheme).value());
      set_expert_options(parse_expert_options("4G,trace=uses").value());
      EXPECT_EQ(expert_options().trace_path, "uses");
      EXPECT_TRUE(use_profile(""));
      SmallGraph graph(rope(GGML_ROPE_TYPE_NEOX));
      set_one_thread(graph.backend());
      graph.compute();
      graph.compute();
    }
  };
  const auto fit_keys = [] {
    for (int round = 0; round < 4 * kRounds; ++round) {
      start_fit_run(testing::TempDir() + "/two_models_test.keys");
      std::this_thread::yield();
      (void)end_fit_run();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.emplace_back(run_model, "turbo4");
    threads.emplace_back(run_model, "turbo8v4,0-1=turbo3");
    threads.emplace_back(fit_keys);
  }
  set_expert_options({});
}

}  // namespace
}  // namespace slipstream::turbo
