#include "bench/quality/cache_rows.h"

#include <fcntl.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "engine/state/packed_state.h"
#include "engine/state/state_blob.h"

namespace slipstream::quality {
namespace {

constexpr llama_seq_id kRowSeq = 0;

// The cache as libllama shows it: compressed rows as f16.
Result<Mapping> read_state(llama_context* context) {
  Result<Mapping> state = Mapping::anonymous(llama_state_seq_get_size(context, kRowSeq));
  if (!state) return state;
  const std::span<std::byte> bytes = state->bytes();
  if (llama_state_seq_get_data(context, reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(),
                               kRowSeq) != bytes.size()) {
    return fail(Code::kUnsupported, "libllama cannot show the KV cache of this model");
  }
  return state;
}

std::vector<float> to_floats(std::span<const std::uint16_t> row) {
  std::vector<float> floats(row.size());
  ggml_fp16_to_fp32_row(row.data(), floats.data(), static_cast<std::int64_t>(row.size()));
  return floats;
}

std::span<const std::uint16_t> halves(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint16_t*>(bytes.data()),
          bytes.size() / sizeof(std::uint16_t)};
}

std::vector<double> mean_of_rows(std::span<const std::uint16_t> rows, std::size_t n_channels) {
  std::vector<double> mean(n_channels);
  const std::size_t n_rows = rows.size() / n_channels;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::vector<float> row = to_floats(rows.subspan(i * n_channels, n_channels));
    for (std::size_t c = 0; c < n_channels; ++c) {
      mean[c] += static_cast<double>(row[c]) / static_cast<double>(n_rows);
    }
  }
  return mean;
}

}  // namespace

std::uint64_t row_bytes(llama_context* context) {
  return llama_state_seq_get_size(context, kRowSeq);
}

Result<void> record_rows(llama_context* context, const std::string& path) {
  const Result<Mapping> state = read_state(context);
  if (!state) return std::unexpected(state.error());
  const Result<UniqueFd> file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!file) return std::unexpected(file.error());
  return write_exactly(file->get(), state->bytes());
}

Result<RowFigures> compare_rows(llama_context* context, const std::string& path) {
  // In the packed state, the device says where the rows of compressed caches are.
  const Result<std::vector<std::byte>> packed = PackedState().save(context, kRowSeq);
  if (!packed) return std::unexpected(packed.error());
  const Result<StateBlob> layout = StateBlob::parse(*packed);
  if (!layout) return std::unexpected(layout.error());
  if (layout->gaps().empty()) return RowFigures{};
  const Result<Mapping> base = Mapping::of_file(path);
  if (!base) return std::unexpected(base.error());
  const Result<Mapping> found = read_state(context);
  if (!found) return std::unexpected(found.error());
  if (base->bytes().size() != found->bytes().size()) {
    return fail(Code::kCorrupt,
                format_text("{} does not hold f16's cache of this text: run eval again", path));
  }
  RowFigures all;
  double error_sum = 0;
  for (const StateGap& gap : layout->gaps()) {
    const RowFigures layer =
        compare_layer(halves(base->bytes().subspan(gap.offset, gap.n_bytes())),
                      halves(found->bytes().subspan(gap.offset, gap.n_bytes())),
                      gap.row_bytes / sizeof(std::uint16_t));
    all.n_rows += layer.n_rows;
    error_sum += layer.error_mean * layer.n_rows;
    if (layer.n_lost > all.n_lost) {
      all.n_lost = layer.n_lost;
      all.first_lost = layer.first_lost;
    }
  }
  all.error_mean = error_sum / all.n_rows;
  return all;
}

// The error is relative to the deviation from the mean row: keys of some models have a large
// offset, which a lost row may still have.
RowFigures compare_layer(std::span<const std::uint16_t> base, std::span<const std::uint16_t> found,
                         std::size_t n_channels) {
  const std::vector<double> mean = mean_of_rows(base, n_channels);
  RowFigures figures{.n_rows = static_cast<int>(base.size() / n_channels)};
  int n_run = 0;
  for (int i = 0; i < figures.n_rows; ++i) {
    const std::size_t start = static_cast<std::size_t>(i) * n_channels;
    const std::vector<float> right = to_floats(base.subspan(start, n_channels));
    const std::vector<float> row = to_floats(found.subspan(start, n_channels));
    double energy = 0;
    double error = 0;
    for (std::size_t c = 0; c < n_channels; ++c) {
      const double deviation = static_cast<double>(right[c]) - mean[c];
      const double distance = static_cast<double>(right[c]) - static_cast<double>(row[c]);
      energy += deviation * deviation;
      error += distance * distance;
    }
    const double relative = energy > 0 ? error / energy : 0;
    figures.error_mean += relative / figures.n_rows;
    n_run = relative < kLostError ? 0 : n_run + 1;  // NaN counts as lost
    if (n_run > figures.n_lost) {
      figures.n_lost = n_run;
      figures.first_lost = i + 1 - n_run;
    }
  }
  return figures;
}

}  // namespace slipstream::quality
