#include "device/codec/key_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "device/codec/codebook.h"
#include "device/codec/codec_kernels.h"

namespace slipstream::turbo {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The element, +1 or -1, of the Walsh-Hadamard matrix of any size.
double hadamard_sign(int row, int column) {
  return std::popcount(static_cast<unsigned>(row & column)) % 2 == 0 ? 1 : -1;
}

// The blocks of channels that are mixed with each other: each class is cut into powers of two,
// largest first.
std::vector<int> mixed_blocks(const ChannelClasses& classes) {
  std::vector<int> blocks;
  for (const auto [bits, n_channels] : classes) {
    for (auto rest = static_cast<unsigned>(n_channels); rest != 0;) {
      blocks.push_back(static_cast<int>(std::bit_floor(rest)));
      rest -= std::bit_floor(rest);
    }
  }
  return blocks;
}

// The variance of each mixed channel before it is scaled to that of the levels. Its square is the
// weight of the channel's error, because queries have moment 1 in the directions of a basis.
std::vector<double> mixed_variances(std::span<const float> variances,
                                    const ChannelClasses& classes) {
  std::vector<double> mixed;
  std::size_t first = 0;
  for (const int n : mixed_blocks(classes)) {
    double variance = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(n); ++i) {
      variance += std::sqrt(static_cast<double>(variances[i])) / n;
    }
    mixed.insert(mixed.end(), static_cast<std::size_t>(n), variance);
    first += static_cast<std::size_t>(n);
  }
  return mixed;
}

// The expected square error of a score, up to a factor.
double expected_error(std::span<const float> variances, const ChannelClasses& classes) {
  const std::vector<double> mixed = mixed_variances(variances, classes);
  double error = 0;
  std::size_t i = 0;
  for (const auto [bits, n_channels] : classes) {
    for (const std::size_t end = i + static_cast<std::size_t>(n_channels); i < end; ++i) {
      error += mixed[i] * mixed[i] * static_cast<double>(level_error(bits));
    }
  }
  return error;
}

ChannelClasses best_layout(int bits, int head_dim, std::span<const HeadBasis> heads) {
  const auto error = [&](const ChannelClasses& classes) {
    return std::transform_reduce(
        heads.begin(), heads.end(), 0.0, std::plus<>(),
        [&](const HeadBasis& head) { return expected_error(head.variances, classes); });
  };
  return std::ranges::min(fitted_layouts(bits, head_dim), {}, error);
}

// The matrix that the directions of a basis are multiplied with to give z. Each direction is
// divided by the fourth root of its variance: this is half of whitening, which minimises the error
// if channels share levels.
Matrix mixing(std::span<const float> variances, const ChannelClasses& classes) {
  const auto dim = static_cast<Eigen::Index>(variances.size());
  const std::vector<double> mixed = mixed_variances(variances, classes);
  Matrix mix = Matrix::Zero(dim, dim);
  int first = 0;
  for (const int n : mixed_blocks(classes)) {
    for (int i = first; i < first + n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double scale = static_cast<double>(kFittedUnit) /
                           std::sqrt(n * mixed[at] * std::sqrt(static_cast<double>(variances[at])));
      for (int row = 0; row < n; ++row) {
        mix(first + row, i) = scale * hadamard_sign(row, i - first);
      }
    }
    first += n;
  }
  return mix;
}

// FNV-1a over the numbers' bits.
std::uint64_t hash_of(std::initializer_list<std::span<const float>> parts) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::span<const float> part : parts) {
    for (const float number : part) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001b3U;
    }
  }
  return std::max<std::uint64_t>(hash, 1);
}

void append(std::vector<float>& columns, const Matrix& matrix) {
  for (Eigen::Index column = 0; column < matrix.cols(); ++column) {
    for (Eigen::Index row = 0; row < matrix.rows(); ++row) {
      columns.push_back(static_cast<float>(matrix(row, column)));
    }
  }
}

}  // namespace

bool is_fittable(int bits, int head_dim) { return (bits == 3 || bits == 4) && head_dim >= 48; }

std::vector<ChannelClasses> fitted_layouts(int bits, int head_dim) {
  SLIP_CHECK(is_fittable(bits, head_dim), "no classes for such a head");
  const int eighth = std::max(1, head_dim / 64) * 8;
  if (bits == 4) {
    return {{.all = {{{8, eighth}, {4, head_dim - 5 * eighth}, {3, 4 * eighth}}}, .n = 3}};
  }
  // As many channels of 4 bits as leave a multiple of 16 for the rest.
  const int most = std::max(8, (head_dim - 6 * eighth) / 2);
  const int rest = (head_dim - eighth - most + 15) / 16 * 16;
  return {{.all = {{{8, eighth}, {4, head_dim - eighth - rest}, {2, rest}}}, .n = 3},
          {.all = {{{4, 2 * eighth}, {3, head_dim - 4 * eighth}, {2, 2 * eighth}}}, .n = 3}};
}

KeyFit::KeyFit(int bits, int head_dim, std::span<const HeadBasis> heads)
    : head_dim_(static_cast<std::size_t>(head_dim)), classes_(best_layout(bits, head_dim, heads)) {
  for (const HeadBasis& head : heads) {
    SLIP_CHECK(head.mean.size() == head_dim_ && head.variances.size() == head_dim_ &&
                   head.directions.size() == head_dim_ * head_dim_,
               "a basis of another size");
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>
        directions(head.directions.data(), head_dim, head_dim);
    const Matrix to_codes = mixing(head.variances, classes_) * directions.cast<double>();
    means_.append_range(head.mean);
    for (const double variance : mixed_variances(head.variances, classes_)) {
      weights_.push_back(static_cast<float>(variance * variance));
    }
    append(code_columns_, to_codes);
    append(query_columns_, to_codes.inverse().transpose());
  }
  id_ = hash_of({means_, code_columns_});
}

bool KeyFit::is_usable() const {
  const auto is_number = [](float number) { return std::isfinite(number); };
  return std::ranges::all_of(code_columns_, is_number) &&
         std::ranges::all_of(query_columns_, is_number);
}

std::span<const float> KeyFit::mean(std::int64_t head) const {
  return std::span(means_).subspan(static_cast<std::size_t>(head) * head_dim_, head_dim_);
}

// The inverse of to_codes is the transposed matrix of to_queries.
void KeyFit::from_codes(std::int64_t head, std::span<const float> z, std::span<float> key) const {
  const float* column =
      query_columns_.data() + static_cast<std::size_t>(head) * head_dim_ * head_dim_;
  for (std::size_t i = 0; i < head_dim_; ++i, column += head_dim_) {
    key[i] = std::inner_product(z.begin(), z.end(), column, 0.0F);
  }
}

std::span<const float> KeyFit::weights(std::int64_t head) const {
  return std::span(weights_).subspan(static_cast<std::size_t>(head) * head_dim_, head_dim_);
}

void KeyFit::multiply(std::span<const float> columns, std::int64_t head, std::span<const float> x,
                      std::span<float> y) const {
  const std::size_t n = head_dim_ * head_dim_;
  multiply_fast(columns.subspan(static_cast<std::size_t>(head) * n, n), head_dim_, x, y);
}

}  // namespace slipstream::turbo
