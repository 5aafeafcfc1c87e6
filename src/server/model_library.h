// ModelLibrary: models beyond those that the server was started with: those on this machine's disk,
// and those of a hub that could be fetched. The server asks; who starts it knows where they are.
//
// Every call may take long, for it reads disks or asks other hosts.
//
// Threads: thread-safe. Errors: kNotFound for a model that is not installed; kInvalidArgument for
// what is no name; as of disk and network.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream {

struct PooledModel;

class ModelLibrary {
 public:
  struct Installed {
    std::string name;
    std::string path;
    std::uint64_t n_bytes = 0;  // of its files
    std::string quant;
    // With which context and KV scheme it would be loaded; why not, where it would not fit.
    int n_context = 0;
    std::string kv;
    std::string why_not;
  };
  struct Found {
    struct Variant {
      std::string quant;
      std::uint64_t n_bytes = 0;
    };
    std::string repo;
    std::uint64_t n_downloads = 0;
    std::vector<Variant> variants;
  };
  struct Progress {
    std::uint64_t n_bytes = 0;
    std::uint64_t n_bytes_all = 0;
  };

  ModelLibrary() = default;
  virtual ~ModelLibrary() = default;
  ModelLibrary(const ModelLibrary&) = delete;
  ModelLibrary& operator=(const ModelLibrary&) = delete;

  [[nodiscard]] virtual Result<std::vector<Installed>> list() = 0;
  // One that is installed, as the pool can load it, under the name that it has in list().
  [[nodiscard]] virtual Result<PooledModel> find(std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::vector<Found>> search(std::string_view text,
                                                          const std::stop_token& stop) = 0;
  // Reads the name only.
  [[nodiscard]] virtual Result<void> check_name(std::string_view name) const = 0;
  [[nodiscard]] virtual Result<void> pull(std::string_view name,
                                          const std::function<void(const Progress&)>& on_progress,
                                          const std::stop_token& stop) = 0;
};

}  // namespace slipstream
