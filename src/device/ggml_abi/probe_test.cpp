#include "device/ggml_abi/probe.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "device/ggml_abi/ggml_abi.h"

namespace slipstream::turbo {
namespace {

class Probe : public testing::Test {
 protected:
  static void SetUpTestSuite() { ggml_backend_load_all(); }
};

TEST_F(Probe, AcceptsThePackagedGgml) {
  const Result<void> probed = probe_ggml(ggml_version());
  EXPECT_TRUE(probed) << (probed ? "" : probed.error().message);
}

TEST_F(Probe, RefusesAVersionThatWasNotTested) {
  for (const char* version : {"0.26.0", "0.28.0", "1.0.0", ""}) {
    const Result<void> probed = probe_ggml(version);
    ASSERT_FALSE(probed) << version;
    EXPECT_EQ(probed.error().code, Code::kUnsupported);
    EXPECT_NE(probed.error().message.find("tested is 0.27.0"), std::string::npos);
  }
}

// Another API version, or a null pointer where a function has to be, is noticed before any call.
TEST_F(Probe, RefusesAnotherLayout) {
  ggml_backend_reg_t reg = ggml_backend_reg_by_name("CPU");
  ASSERT_NE(reg, nullptr);
  const int api_version = reg->api_version;
  reg->api_version = 2;
  const Result<void> other_api = probe_ggml(ggml_version());
  reg->api_version = api_version;
  ASSERT_FALSE(other_api);
  EXPECT_NE(other_api.error().message.find("reg.api_version"), std::string::npos);

  ggml_backend_buffer_type_t buft =
      ggml_backend_dev_buffer_type(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
  const auto alloc = buft->iface.alloc_buffer;
  buft->iface.alloc_buffer = nullptr;
  const Result<void> moved = probe_ggml(ggml_version());
  buft->iface.alloc_buffer = alloc;
  ASSERT_FALSE(moved);
  EXPECT_NE(moved.error().message.find("buffer_type.alloc_buffer"), std::string::npos);
}

}  // namespace
}  // namespace slipstream::turbo
