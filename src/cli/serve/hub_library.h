// HubLibrary: the models of --hub for the server's routes: those in the cache that `slipstream
// pull` fills, and those of the hub itself. Models of the command line are listed too.
//
// Threads: thread-safe; the file system is the state, besides what the hub said of recommended models.
// Errors:  those of model_library.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cli/serve/models.h"
#include "cli/serve/recommended.h"
#include "hub/hub_api.h"
#include "hub/installed.h"
#include "hub/settings.h"
#include "server/model_library.h"
#include "server/model_pool.h"

namespace slipstream::serve {

class HubLibrary : public ModelLibrary {
 public:
  // served: the models of the command line. bytes_max: what all loaded models together may take.
  HubLibrary(hub::Settings settings, Options options, std::vector<NamedModel> served,
             std::uint64_t bytes_max);

  [[nodiscard]] Result<std::vector<Installed>> list() override;
  [[nodiscard]] Result<PooledModel> find(std::string_view name) override;
  [[nodiscard]] Result<std::vector<Found>> search(std::string_view text,
                                                  const std::stop_token& stop) override;
  [[nodiscard]] Result<std::vector<Recommended>> recommend(const std::stop_token& stop) override;
  [[nodiscard]] Result<void> check_name(std::string_view name) const override;
  [[nodiscard]] Result<void> pull(std::string_view name,
                                  const std::function<void(const Progress&)>& on_progress,
                                  const std::stop_token& stop) override;
  [[nodiscard]] Result<void> remove(std::string_view name) override;

 private:
  // The model of the command line at this path; null if there is none.
  [[nodiscard]] const NamedModel* served_at(const std::string& path) const;
  void add_fit(Installed& model) const;
  void add_fit(Recommended& model, const Recommendation& what) const;
  // As the hub has it; the first time asks the hub.
  [[nodiscard]] Result<Recommended> look_up(const Recommendation& what,
                                            const std::stop_token& stop);

  const hub::Settings settings_;
  const Options options_;
  const std::vector<NamedModel> served_;
  const std::uint64_t bytes_max_;
  Mutex mutex_;
  std::map<std::string_view, Recommended> looked_up_ SLIP_GUARDED_BY(mutex_);  // by repository
};

}  // namespace slipstream::serve
