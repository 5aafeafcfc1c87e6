// ModelLibrary: models besides those that the server was started with: models on this machine's
// disk, and models of a hub that can be downloaded. The caller that starts the server implements
// it and knows where the models are.
//
// Every call may take long, because it reads disks or sends requests to other hosts.
//
// Threads: thread-safe.
// Errors:  kNotFound for a model that is not installed, kInvalidArgument for an invalid name, and
//          errors of disk and network.
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
    std::uint64_t n_bytes = 0;  // size of its files
    std::string quant;
    // The context and KV scheme with which it would be loaded, or the reason why it does not fit.
    int n_context = 0;
    std::string kv;
    std::string why_not;
    bool is_removable = false;  // remove() can remove it
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
  // A model for people who have none.
  struct Recommended {
    std::string name;   // org/repo:quant
    std::string about;  // for people
    std::uint64_t n_bytes = 0;
    // As for an installed one.
    int n_context = 0;
    std::string kv;
    std::string why_not;
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
  // Returns an installed model for the pool to load, under the name that it has in list().
  [[nodiscard]] virtual Result<PooledModel> find(std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::vector<Found>> search(std::string_view text,
                                                          const std::stop_token& stop) = 0;
  // The one to take first, if it fits, comes first. Answers of the hub are kept.
  [[nodiscard]] virtual Result<std::vector<Recommended>> recommend(const std::stop_token& stop) = 0;
  // Checks only the form of the name.
  [[nodiscard]] virtual Result<void> check_name(std::string_view name) const = 0;
  [[nodiscard]] virtual Result<void> pull(std::string_view name,
                                          const std::function<void(const Progress&)>& on_progress,
                                          const std::stop_token& stop) = 0;
  // Removes an installed model from the disk. name: as in list(), so that it names one model only.
  // kOverloaded while it is being downloaded.
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
};

}  // namespace slipstream
