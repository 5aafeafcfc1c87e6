#include "engine/forecast/product_trial.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "engine/forecast/buffer_types.h"
#include "engine/forecast/gguf_model.h"
#include "engine/forecast/weight_bytes.h"
#include "engine/model/own_thread.h"

namespace slipstream {
namespace {

// Models with fewer weights are not tried.
constexpr std::int64_t kTriedWeightsMin = 100'000'000;
// Types that have a smaller share of the weights do not matter.
constexpr double kTriedShareMin = 0.05;
// Weights of a trial: more than the second cache holds.
constexpr std::int64_t kTrialWeights = std::int64_t{1} << 23;
constexpr std::int64_t kPromptColumns = 256;
// The fastest counts. One column takes less than a millisecond, so that it needs more rounds.
constexpr int kPromptRounds = 5;
constexpr int kDecodeRounds = 40;

// The weights of one type, and their most frequent number of columns.
struct TypeShare {
  std::int64_t n_weights = 0;
  std::int64_t n_inner = 0;
};

// Whether stock has a kernel for weights of the type. A file may name any type, and ggml ends the
// process where there is none.
bool is_weight_type(ggml_type type) {
  return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 ||
         (ggml_is_quantized(type) && type != GGML_TYPE_Q8_K &&
          ggml_get_type_traits(type)->to_float != nullptr);
}

std::map<ggml_type, TypeShare> shares_of(const GgufModel& model) {
  std::map<ggml_type, TypeShare> shares;
  std::map<std::pair<ggml_type, std::int64_t>, std::int64_t> n_by_inner;
  for (const GgufTensor& tensor : model.tensors()) {
    if (role_of(tensor) == WeightRole::kLookup || !is_weight_type(tensor.type)) continue;
    const std::int64_t n = tensor.ne[0] * tensor.ne[1] * tensor.ne[2];
    TypeShare& share = shares[tensor.type];
    share.n_weights += n;
    std::int64_t& n_alike = n_by_inner[{tensor.type, tensor.ne[0]}];
    n_alike += n;
    if (share.n_inner == 0 || n_alike > n_by_inner[{tensor.type, share.n_inner}]) {
      share.n_inner = tensor.ne[0];
    }
  }
  return shares;
}

// One product on one device, with weights in one layout.
class Contender {
 public:
  // null: the device does not multiply this type in this layout, or there is no memory.
  static std::unique_ptr<Contender> make(ggml_backend_t backend, ggml_backend_buffer_type_t layout,
                                         ggml_type type, std::int64_t n_inner,
                                         const std::vector<std::byte>& rows) {
    auto made = std::unique_ptr<Contender>(new Contender(backend));
    if (!made->context_ || !made->build(layout, type, n_inner, rows)) return nullptr;
    return made;
  }

  // Keeps the time of the fastest run.
  void run(std::int64_t n_columns) {
    const bool is_prompt = n_columns > 1;
    const auto start = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend_, is_prompt ? prompt_ : decode_);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    double& best = is_prompt ? prompt_seconds_ : decode_seconds_;
    best = std::min(best, took.count());
  }
  [[nodiscard]] double prompt_seconds() const { return prompt_seconds_; }
  [[nodiscard]] double decode_seconds() const { return decode_seconds_; }

 private:
  explicit Contender(ggml_backend_t backend)
      : backend_(backend),
        context_(ggml_init({.mem_size = 16 * ggml_tensor_overhead() + 2 * ggml_graph_overhead(),
                            .mem_buffer = nullptr,
                            .no_alloc = true})) {}

  bool build(ggml_backend_buffer_type_t layout, ggml_type type, std::int64_t n_inner,
             const std::vector<std::byte>& rows) {
    ggml_context* context = context_.get();
    const auto n_rows = static_cast<std::int64_t>(rows.size() / ggml_row_size(type, n_inner));
    ggml_tensor* weights = ggml_new_tensor_2d(context, type, n_inner, n_rows);
    weights_.reset(
        ggml_backend_buft_alloc_buffer(layout, ggml_backend_buft_get_alloc_size(layout, weights) +
                                                   ggml_backend_buft_get_alignment(layout)));
    if (!weights_) return false;
    ggml_backend_buffer_set_usage(weights_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_tensor_alloc(weights_.get(), weights,
                              ggml_backend_buffer_get_base(weights_.get()));
    const auto product = [&](std::int64_t n_columns) {
      return ggml_mul_mat(context, weights,
                          ggml_new_tensor_2d(context, GGML_TYPE_F32, n_inner, n_columns));
    };
    ggml_tensor* prompt = product(kPromptColumns);
    ggml_tensor* decode = product(1);
    if (!ggml_backend_supports_op(backend_, prompt)) return false;
    ggml_backend_tensor_set(weights, rows.data(), 0, rows.size());
    results_.reset(
        ggml_backend_alloc_ctx_tensors_from_buft(context, ggml_backend_cpu_buffer_type()));
    if (!results_) return false;
    ggml_backend_buffer_clear(results_.get(), 0);
    for (ggml_tensor* result : {prompt, decode}) {
      ggml_cgraph*& graph = result == prompt ? prompt_ : decode_;
      graph = ggml_new_graph(context);
      ggml_build_forward_expand(graph, result);
    }
    return true;
  }

  ggml_backend_t backend_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr weights_;
  ggml_backend_buffer_ptr results_;
  ggml_cgraph* prompt_ = nullptr;
  ggml_cgraph* decode_ = nullptr;
  double prompt_seconds_ = std::numeric_limits<double>::infinity();
  double decode_seconds_ = std::numeric_limits<double>::infinity();
};

struct Seconds {
  double prompt = 0;
  double decode = 0;
};
struct Times {
  Seconds ours;
  Seconds stock;
};

ggml_backend_ptr start_backend(ggml_backend_dev_t device, int n_threads) {
  ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
  const auto set_threads =
      reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads"));
  if (backend && set_threads != nullptr) set_threads(backend.get(), n_threads);
  return backend;
}

Result<Times> time_type(ggml_backend_t turbo, ggml_backend_t cpu, ggml_type type,
                        std::int64_t n_inner) {
  const std::int64_t n_rows = std::max<std::int64_t>(1, kTrialWeights / n_inner);
  // Bytes whose scales are ordinary numbers in every type: kernels take as long for any.
  const std::vector<std::byte> rows(ggml_row_size(type, n_inner) * static_cast<std::size_t>(n_rows),
                                    std::byte{0x22});
  std::vector<std::unique_ptr<Contender>> contenders;
  const auto enter = [&](ggml_backend_t backend, ggml_backend_buffer_type_t layout) {
    auto contender = Contender::make(backend, layout, type, n_inner, rows);
    if (contender != nullptr) contenders.push_back(std::move(contender));
    return !contenders.empty();
  };
  // Ours comes first.
  if (!enter(turbo, ggml_backend_cpu_buffer_type())) {
    return fail(Code::kOutOfMemory, "no memory to try products");
  }
  enter(cpu, ggml_backend_cpu_buffer_type());
  for (ggml_backend_buffer_type_t layout : extra_buffer_types(ggml_backend_get_device(cpu))) {
    enter(cpu, layout);
  }
  for (const std::int64_t n_columns : {kPromptColumns, std::int64_t{1}}) {
    const int n_rounds = n_columns > 1 ? kPromptRounds : kDecodeRounds;
    for (int round = 0; round < n_rounds; ++round) {
      for (const auto& contender : contenders) contender->run(n_columns);
    }
  }
  Times times{.ours = {.prompt = contenders[0]->prompt_seconds(),
                       .decode = contenders[0]->decode_seconds()},
              .stock = {.prompt = std::numeric_limits<double>::infinity(),
                        .decode = std::numeric_limits<double>::infinity()}};
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    times.stock.prompt = std::min(times.stock.prompt, contenders[i]->prompt_seconds());
    times.stock.decode = std::min(times.stock.decode, contenders[i]->decode_seconds());
  }
  return times;
}

Result<ProductTrial> try_types(const std::map<ggml_type, TypeShare>& shares, double n_weights,
                               ggml_backend_dev_t turbo_device, int n_threads) {
  ggml_backend_dev_t cpu_device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu_device == nullptr) return fail(Code::kUnsupported, "ggml has no CPU backend loaded");
  const ggml_backend_ptr turbo = start_backend(turbo_device, n_threads);
  const ggml_backend_ptr cpu = start_backend(cpu_device, n_threads);
  if (!turbo || !cpu) return fail(Code::kOutOfMemory, "no memory to try products");
  Times sum;
  for (const auto& [type, share] : shares) {
    const double part = static_cast<double>(share.n_weights) / n_weights;
    if (part < kTriedShareMin) continue;
    const Result<Times> times = time_type(turbo.get(), cpu.get(), type, share.n_inner);
    if (!times) return std::unexpected(times.error());
    sum.ours.prompt += part * times->ours.prompt;
    sum.ours.decode += part * times->ours.decode;
    sum.stock.prompt += part * times->stock.prompt;
    sum.stock.decode += part * times->stock.decode;
  }
  return ProductTrial{.prompt = sum.stock.prompt / sum.ours.prompt,
                      .decode = sum.stock.decode / sum.ours.decode};
}

}  // namespace

Result<std::optional<ProductTrial>> try_products(const std::filesystem::path& model,
                                                 const std::filesystem::path& plugin,
                                                 int n_threads) {
  const Result<GgufModel> file = GgufModel::open(model);
  if (!file) return std::unexpected(file.error());
  const std::map<ggml_type, TypeShare> shares = shares_of(*file);
  std::int64_t n_weights = 0;
  for (const auto& [type, share] : shares) n_weights += share.n_weights;
  if (n_weights < kTriedWeightsMin) return std::nullopt;
  const Result<TurboDevice> turbo = TurboDevice::open(plugin, "f16", "", /*has_products=*/true);
  if (!turbo) return std::unexpected(turbo.error());
  Result<ProductTrial> trial = fail(Code::kUnsupported, "not tried");
  on_own_thread([&] {
    trial = try_types(shares, static_cast<double>(n_weights), turbo->handle(), n_threads);
  });
  if (!trial) return std::unexpected(trial.error());
  return *trial;
}

}  // namespace slipstream
