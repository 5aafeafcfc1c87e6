#include <base/log.h>
#include <base/unique_fd.h>
#include <fcntl.h>

int main() {
  const auto fd = slipstream::open_file("/nonexistent", O_RDONLY);
  slipstream::log::info("consumer", {{"message", fd.error().message}});
  return fd.error().code == slipstream::Code::kNotFound ? 0 : 1;
}
