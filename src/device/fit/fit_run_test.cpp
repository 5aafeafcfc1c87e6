#include "device/fit/fit_run.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream::turbo {
namespace {

// While this object lives, it collects ggml's log.
class LogText {
 public:
  LogText() {
    ggml_log_get(&before_, &data_before_);
    ggml_log_set([](ggml_log_level, const char* line,
                    void* user) { static_cast<LogText*>(user)->text_ += line; },
                 this);
  }
  ~LogText() { ggml_log_set(before_, data_before_); }
  LogText(const LogText&) = delete;
  LogText& operator=(const LogText&) = delete;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  ggml_log_callback before_ = nullptr;
  void* data_before_ = nullptr;
  std::string text_;
};

TEST(FitRun, SaysWhyNoLayerIsFitted) {
  FitRun run(testing::TempDir() + "/fit_run_test.keys");
  run.refuse(0, "its heads are too small");
  run.refuse(1, "its heads are too small");
  const LogText log;
  EXPECT_EQ(run.end().value(), 0U);
  EXPECT_NE(log.text().find("0-1 are not fitted: its heads are too small"), std::string::npos)
      << log.text();
}

}  // namespace
}  // namespace slipstream::turbo
