#include "hub/pull.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <optional>
#include <thread>

#include "base/file_lock.h"
#include "base/format.h"
#include "base/format_bytes.h"
#include "hub/cache_layout.h"
#include "hub/file_hash.h"
#include "hub/gguf_choice.h"
#include "hub/hub_api.h"
#include "hub/listing.h"

namespace slipstream::hub {
namespace {

// How often to check whether another process has ended its download of a file.
constexpr std::chrono::milliseconds kLockPause{100};

bool is_whole(const RepoCache& cache, const RemoteFile& file) {
  std::error_code error;
  return std::filesystem::file_size(cache.blob(file.hash), error) == file.n_bytes && !error;
}

// The pull of one model.
class Pull {
 public:
  Pull(const Settings& settings, const PullOptions& options)
      : settings_(settings),
        options_(options),
        cache_(settings.cache, options.model),
        subject_(subject_of(settings, options.model)) {}

  Result<Offer> look_up() const {
    const Result<RepoListing> listing = list();
    if (!listing) return std::unexpected(listing.error());
    Pulled chosen;
    const Result<std::vector<RemoteFile>> files = choose_files(*listing, chosen);
    if (!files) return std::unexpected(files.error());
    Offer offer{.name = chosen.name};
    for (const RemoteFile& file : *files) offer.n_bytes += file.n_bytes;
    return offer;
  }

  Result<Pulled> run() {
    const Result<RepoListing> listing = list();
    if (!listing) return std::unexpected(listing.error());
    Pulled pulled;
    const Result<std::vector<RemoteFile>> files = choose_files(*listing, pulled);
    if (!files) return std::unexpected(files.error());
    if (Result<void> made = cache_.make_folders(); !made) {
      return std::unexpected(std::move(made.error()));
    }
    if (Result<void> fits = check_space(*files); !fits) {
      return std::unexpected(std::move(fits.error()));
    }
    for (const RemoteFile& file : *files) n_bytes_ += file.n_bytes;
    pulled.n_bytes = n_bytes_;
    for (const RemoteFile& file : *files) {
      if (Result<void> ensured = ensure_blob(*listing, file); !ensured) {
        return std::unexpected(std::move(ensured.error()));
      }
      if (Result<void> linked = cache_.link(listing->commit, file.path, file.hash); !linked) {
        return std::unexpected(std::move(linked.error()));
      }
      pulled.files.push_back(cache_.snapshot(listing->commit, file.path));
      n_before_ += file.n_bytes;
    }
    if (Result<void> set = cache_.set_main_commit(listing->commit); !set) {
      return std::unexpected(std::move(set.error()));
    }
    pulled.n_fetched_bytes = n_fetched_;
    return pulled;
  }

 private:
  [[nodiscard]] Result<RepoListing> list() const {
    return HubApi(settings_, options_.download.n_retries, options_.download.stop)
        .list(options_.model);
  }

  Result<std::vector<RemoteFile>> choose_files(const RepoListing& listing, Pulled& pulled) const {
    std::vector<std::string> paths;
    for (const RemoteFile& file : listing.files) paths.push_back(file.path);
    const std::vector<Variant> variants = find_variants(paths);
    const Result<VariantChoice> choice =
        choose_variant(variants, options_.model.quant, subject_.repo_id);
    if (!choice) return std::unexpected(choice.error());
    const Variant& variant = variants[choice->variant_idx];
    if (Result<void> complete = check_complete(variant); !complete) {
      return std::unexpected(std::move(complete.error()));
    }
    remark(choice->remark);
    pulled.name = format_text("{}:{}", subject_.repo_id, variant.name());
    std::vector<RemoteFile> files;
    for (const std::size_t idx : variant.parts) {
      const RemoteFile& file = listing.files[idx];
      if (file.hash.hex.empty() || file.n_bytes == 0) {
        return fail(Code::kCorrupt,
                    format_text("the hub gives no hash or no size for {}: it could not be verified",
                                file.path));
      }
      files.push_back(file);
    }
    return files;
  }

  Result<void> check_space(const std::vector<RemoteFile>& files) const {
    std::uint64_t n_wanted = 0;
    for (const RemoteFile& file : files) {
      if (is_whole(cache_, file)) continue;
      n_wanted +=
          file.n_bytes - std::min(file.n_bytes, allocated_bytes(cache_.incomplete(file.hash)));
    }
    struct statvfs space{};
    if (::statvfs(cache_.folder().c_str(), &space) != 0) {
      return fail_errno(errno, format_text("cannot access {}", cache_.folder().string()));
    }
    const std::uint64_t n_free = std::uint64_t{space.f_bavail} * space.f_frsize;
    if (n_wanted <= n_free) return {};
    return fail(
        Code::kIo,
        format_text("{} are to be downloaded and {} are free in {}: free some space, or set "
                    "HF_HUB_CACHE to a directory on another disk",
                    format_bytes(n_wanted), format_bytes(n_free), settings_.cache.string()));
  }

  Result<void> ensure_blob(const RepoListing& listing, const RemoteFile& file) {
    if (is_whole(cache_, file)) return {};
    const std::filesystem::path lock_path = cache_.lock(file.hash.hex);
    Result<std::optional<FileLock>> lock = FileLock::try_lock(lock_path);
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) {
      remark(format_text("another process is downloading {}: waiting for it", file.path));
    }
    while (!*lock) {
      if (is_stopped()) return std::unexpected(stopped_download());
      std::this_thread::sleep_for(kLockPause);
      lock = FileLock::try_lock(lock_path);
      if (!lock) return std::unexpected(lock.error());
    }
    if (is_whole(cache_, file)) return {};  // the other process has downloaded it
    Result<PartialFile> partial =
        PartialFile::open(cache_.incomplete(file.hash), cache_.chunks(file.hash), file.n_bytes);
    if (!partial) return std::unexpected(partial.error());
    const std::uint64_t n_there = partial->done_bytes();
    if (n_there > 0) {
      remark(format_text("resuming {}: {} of {} are here", file.path, format_bytes(n_there),
                         format_bytes(file.n_bytes)));
    }
    if (Result<void> fetched = fetch(listing, file, *partial); !fetched) return fetched;
    n_fetched_ += file.n_bytes - n_there;
    if (Result<void> verified = verify(file, *partial); !verified) return verified;
    return partial->publish(cache_.blob(file.hash));
  }

  Result<void> fetch(const RepoListing& listing, const RemoteFile& file, PartialFile& partial) {
    const HttpRequest request{
        .url = format_text("{}/{}/resolve/{}/{}", settings_.endpoint, subject_.repo_id,
                           listing.commit, escape_path(file.path)),
        .token = settings_.token,
        .range = std::nullopt};
    return download_ranges(request, subject_, partial, options_.download, [&](std::uint64_t done) {
      show({.stage = PullProgress::Stage::kDownload,
            .file = file.path,
            .done_bytes = n_before_ + done,
            .n_bytes = n_bytes_});
    });
  }

  Result<void> verify(const RemoteFile& file, const PartialFile& partial) const {
    const Result<std::string> hash =
        hash_file(cache_.incomplete(file.hash), file.hash.kind, [&](std::uint64_t done) {
          show({.stage = PullProgress::Stage::kVerify,
                .file = file.path,
                .done_bytes = done,
                .n_bytes = file.n_bytes});
          return !is_stopped();
        });
    if (!hash && is_stopped()) return std::unexpected(stopped_download());
    if (!hash) return std::unexpected(hash.error());
    if (*hash == file.hash.hex) return {};
    partial.remove();
    return fail(Code::kCorrupt,
                format_text("{} has the hash {} and should have {}: the download was removed; run "
                            "the same command again, and if this happens twice, the hub's file is "
                            "damaged",
                            file.path, *hash, file.hash.hex));
  }

  [[nodiscard]] bool is_stopped() const { return options_.download.stop.stop_requested(); }
  void show(const PullProgress& progress) const {
    if (options_.on_progress) options_.on_progress(progress);
  }
  void remark(const std::string& text) const {
    if (options_.on_remark && !text.empty()) options_.on_remark(text);
  }

  const Settings& settings_;
  const PullOptions& options_;
  const RepoCache cache_;
  const Subject subject_;
  std::uint64_t n_bytes_ = 0;   // total of all files
  std::uint64_t n_before_ = 0;  // total of the completed files
  std::uint64_t n_fetched_ = 0;
};

}  // namespace

Result<Offer> look_up(const Settings& settings, const ModelName& model) {
  const PullOptions options{.model = model, .download = {}, .on_progress = {}, .on_remark = {}};
  return Pull(settings, options).look_up();
}

Result<Pulled> pull(const Settings& settings, const PullOptions& options) {
  return Pull(settings, options).run();
}

}  // namespace slipstream::hub
