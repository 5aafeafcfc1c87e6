#include "cli/doctor/doctor.h"

#include <algorithm>
#include <cstdio>

#include "cli/doctor/probes.h"
#include "cli/version.h"

namespace slipstream::doctor {

int run(const Options& options) {
  std::vector<Finding> findings = probe_cpu();
  findings.append_range(probe_memory());
  findings.append_range(probe_engine());
  findings.append_range(probe_storage(options.model_dir));
  if (!options.model.empty()) findings.append_range(probe_model(options.model));
  std::fputs(format_report(findings).c_str(), stdout);
  return std::ranges::contains(findings, Status::kMissing, &Finding::status) ? 1 : 0;
}

}  // namespace slipstream::doctor
