#include "cli/hub/pull.h"

#include <chrono>
#include <cstdio>
#include <optional>

#include "base/format.h"
#include "base/format_bytes.h"
#include "cli/progress.h"

namespace slipstream::pull {
namespace {

using std::chrono::steady_clock;
using Stage = hub::PullProgress::Stage;

void say(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

// Shows one progress line at a time, and starts a new one for each file and stage.
class ProgressLines {
 public:
  void show(const hub::PullProgress& progress) {
    const bool is_new = !line_ || file_ != progress.file || stage_ != progress.stage;
    if (is_new) {
      line_.reset();
      line_.emplace(format_text("{} {}",
                                progress.stage == Stage::kDownload ? "downloading" : "verifying",
                                progress.file));
      file_ = progress.file;
      stage_ = progress.stage;
      begun_bytes_ = progress.done_bytes;
      begun_ = steady_clock::now();
    }
    line_->show(static_cast<double>(progress.done_bytes) / static_cast<double>(progress.n_bytes),
                describe(progress));
  }
  void wipe() { line_.reset(); }

 private:
  // "1.2 GiB of 4.4 GiB, 35.1 MB/s". The speed counts only what came since this line began.
  [[nodiscard]] ProgressNote describe(const hub::PullProgress& progress) const {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begun_).count();
    const double speed =
        seconds > 0 ? static_cast<double>(progress.done_bytes - begun_bytes_) / seconds : 0;
    const auto left = static_cast<double>(progress.n_bytes - progress.done_bytes);
    return {.text = format_text("{} of {}, {:.1f} MB/s", format_bytes(progress.done_bytes),
                                format_bytes(progress.n_bytes), speed / 1e6),
            .seconds_left = speed > 0 && seconds > 1 ? std::optional(left / speed) : std::nullopt};
  }

  std::optional<Progress> line_;
  std::string file_;
  Stage stage_ = Stage::kDownload;
  std::uint64_t begun_bytes_ = 0;
  steady_clock::time_point begun_;
};

}  // namespace

Result<hub::Pulled> install(const Options& options) {
  Result<hub::ModelName> model = hub::parse_model_name(options.model);
  if (!model) return std::unexpected(std::move(model.error()));
  const Result<hub::Settings> settings = hub::read_settings();
  if (!settings) return std::unexpected(settings.error());
  ProgressLines lines;
  return hub::pull(
      *settings,
      {.model = std::move(*model),
       .download = {.n_connections = options.n_connections, .n_retries = options.n_retries},
       .on_progress = [&](const hub::PullProgress& progress) { lines.show(progress); },
       .on_remark =
           [&](const std::string& text) {
             lines.wipe();
             say(text);
           }});
}

int run(const Options& options) {
  const steady_clock::time_point started = steady_clock::now();
  const Result<hub::Pulled> pulled = install(options);
  if (!pulled) {
    say("slipstream pull: " + pulled.error().message);
    return 1;
  }
  const double seconds = std::chrono::duration<double>(steady_clock::now() - started).count();
  if (pulled->n_fetched_bytes == 0) {
    say(format_text("{} is installed already, {}", pulled->name, format_bytes(pulled->n_bytes)));
  } else {
    say(format_text("{} is installed and verified: {}, of which {} were downloaded in {:.0f} s",
                    pulled->name, format_bytes(pulled->n_bytes),
                    format_bytes(pulled->n_fetched_bytes), seconds));
  }
  std::printf("%s\n", pulled->files.front().c_str());
  return 0;
}

}  // namespace slipstream::pull
