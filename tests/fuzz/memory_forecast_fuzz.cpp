// Any bytes as the header of a model: the forecast is an Error or a number, without a crash, and no
// number has wrapped around. Behind the header the file goes on with zeroes, so that tensors have
// room to lie in.
#include <ggml-backend.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "engine/forecast/kv_choice.h"
#include "harness.h"

namespace {

constexpr std::size_t kFileBytes = std::size_t{1} << 20;

void quiet(ggml_log_level /*level*/, const char* /*text*/, void* /*user_data*/) {}

bool load_backends() {
  ggml_log_set(quiet, nullptr);
  ggml_backend_load_all();
  return true;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  using namespace slipstream;
  [[maybe_unused]] static const bool is_loaded = load_backends();
  const UniqueFd file(::memfd_create("model.gguf", 0));
  SLIP_CHECK(::ftruncate(file.get(), static_cast<off_t>(std::max(kFileBytes, n_bytes))) == 0 &&
                 ::pwrite(file.get(), data, n_bytes, 0) == static_cast<ssize_t>(n_bytes),
             "no memory");
  const Result<ModelProfile> profile = read_profile(format_text("/proc/self/fd/{}", file.get()));
  if (!profile) {
    SLIP_CHECK(!profile.error().message.empty(), "an error without a word");
    return 0;
  }
  for (const char* name : {"f16", "q8_0", "turbo8v4", "turbo3"}) {
    const Result<MemoryForecast> small = forecast(*profile, *parse_kv_scheme(name), {.n_ctx = 256});
    const Result<MemoryForecast> large =
        forecast(*profile, *parse_kv_scheme(name), {.n_ctx = 1 << 20, .n_ubatch = 2048});
    if (!small || !large) continue;  // a head that has no blocks of this type
    SLIP_CHECK(small->total() < large->total(), "more tokens in less memory");
    SLIP_CHECK(large->resident() < std::uint64_t{1} << 62, "a number has wrapped around");
  }
  (void)choose(*profile, std::uint64_t{8} << 30, {.n_ctx = 4096}, true);
  return 0;
}
