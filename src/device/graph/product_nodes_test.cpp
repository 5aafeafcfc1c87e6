// Graphs whose products our own kernels compute, compared with the same graphs on stock's.
#include "device/graph/product_nodes.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "device/graph/one_thread_test_support.h"
#include "device/graph/shadow_graph.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/products/product_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kInner = 256;
constexpr std::int64_t kRows = 40;
constexpr std::int64_t kMany = 33;  // columns
constexpr std::int64_t kExperts = 5;
constexpr std::int64_t kRanks = 2;

ggml_context_ptr new_context() {
  return ggml_context_ptr(
      ggml_init({.mem_size = std::size_t{1} << 20U, .mem_buffer = nullptr, .no_alloc = true}));
}

class ProductNodesTest : public testing::Test {
 protected:
  ProductNodesTest() {
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) ggml_backend_load_all();
    backend_.reset(
        ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), nullptr));
    use_known_threads(backend_.get());
  }

  // For another graph.
  void start_over() {
    context_ = new_context();
    weights_context_ = new_context();
    graph_ = ggml_new_graph(context_.get());
    choices_ = nullptr;
  }

  ggml_tensor* new_weights(ggml_type type, std::int64_t n_rows = kRows) {
    return ggml_new_tensor_2d(weights_context_.get(), type, kInner, n_rows);
  }
  ggml_tensor* new_columns(std::int64_t n, std::int64_t n_more = 1) {
    return ggml_new_tensor_3d(context_.get(), GGML_TYPE_F32, kInner, n, n_more);
  }
  ggml_tensor* add(ggml_tensor* result) {
    ggml_build_forward_expand(graph_, result);
    return result;
  }

  // Experts of kRows rows.
  ggml_tensor* new_experts(ggml_type type) {
    return ggml_new_tensor_3d(weights_context_.get(), type, kInner, kRows, kExperts);
  }
  ggml_tensor* new_choices(std::int64_t n_tokens) {
    choices_ = ggml_new_tensor_2d(context_.get(), GGML_TYPE_I32, kRanks, n_tokens);
    return choices_;
  }

  void allocate(ggml_backend_buffer_usage usage = GGML_BACKEND_BUFFER_USAGE_WEIGHTS) {
    weights_.reset(ggml_backend_alloc_ctx_tensors(weights_context_.get(), backend_.get()));
    ggml_backend_buffer_set_usage(weights_.get(), usage);
    memory_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend_.get()));
    for (ggml_tensor* t = ggml_get_first_tensor(weights_context_.get()); t != nullptr;
         t = ggml_get_next_tensor(weights_context_.get(), t)) {
      fill_weights(t->type, ggml_nrows(t), t->ne[0], ++n_filled_,
                   {static_cast<std::byte*>(t->data), ggml_nbytes(t)});
    }
    if (choices_ == nullptr) return;
    // One expert is never chosen, and the second rank prefers the first expert.
    std::vector<std::int32_t> experts(static_cast<std::size_t>(ggml_nelements(choices_)));
    for (std::size_t i = 0; i < experts.size(); ++i) {
      experts[i] = i % 2 == 0 ? static_cast<std::int32_t>(1 + i % (kExperts - 2)) : 0;
    }
    ggml_backend_tensor_set(choices_, experts.data(), 0, ggml_nbytes(choices_));
  }
  void fill(ggml_tensor* columns) {
    const auto numbers =
        random_floats(static_cast<std::size_t>(ggml_nelements(columns)), ++n_filled_);
    ggml_backend_tensor_set(columns, numbers.data(), 0, ggml_nbytes(columns));
  }

  // Gives how many nodes of the graph are our own.
  int compute(bool has_products) {
    const Result<ggml_cgraph*> built = shadow_.build(graph_, {.has_products = has_products});
    EXPECT_TRUE(built.has_value());
    int n_own = 0;
    for (int i = 0; i < ggml_graph_n_nodes(*built); ++i) {
      n_own += ggml_graph_node(*built, i)->op == GGML_OP_CUSTOM ? 1 : 0;
    }
    EXPECT_EQ(ggml_backend_graph_compute(backend_.get(), *built), GGML_STATUS_SUCCESS);
    return n_own;
  }

  static std::vector<float> read(const ggml_tensor* tensor) {
    std::vector<float> numbers(static_cast<std::size_t>(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, numbers.data(), 0, ggml_nbytes(tensor));
    return numbers;
  }

  // Both are near the product of the same numbers: stock rounds columns to 8 bits, we to bf16 on
  // AMX. The error is measured as a whole, against the length of the result.
  // n_own_expected: nodes; nullopt: any number.
  void expect_as_stock(const ggml_tensor* result, std::optional<int> n_own_expected) {
    EXPECT_EQ(compute(false), 0);
    const std::vector<float> wanted = read(result);
    ggml_backend_tensor_memset(const_cast<ggml_tensor*>(result), 0xFF, 0, ggml_nbytes(result));
    const int n_own = compute(true);
    EXPECT_EQ(n_own, n_own_expected.value_or(n_own));
    const std::vector<float> got = read(result);
    double error = 0;
    double length = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      error += std::pow(got[i] - wanted[i], 2);
      length += std::pow(wanted[i], 2);
    }
    EXPECT_LT(std::sqrt(error / length), 0.02) << ggml_get_name(result);
  }

  ggml_backend_ptr backend_;
  ggml_context_ptr weights_context_ = new_context();
  ggml_context_ptr context_ = new_context();
  ggml_cgraph* graph_ = ggml_new_graph(context_.get());
  ggml_tensor* choices_ = nullptr;
  ggml_backend_buffer_ptr weights_;
  ggml_backend_buffer_ptr memory_;
  ShadowGraph shadow_;
  unsigned n_filled_ = 0;
};

class ProductNodesOfType : public ProductNodesTest,
                           public testing::WithParamInterface<ggml_type> {};

TEST_P(ProductNodesOfType, GiveWhatStockGives) {
  ggml_tensor* columns = new_columns(kMany);
  const ggml_tensor* result = add(ggml_mul_mat(context_.get(), new_weights(GetParam()), columns));
  allocate();
  fill(columns);
  expect_as_stock(result, 2);
}

TEST_P(ProductNodesOfType, GiveWhatStockGivesWithExperts) {
  ggml_tensor* columns = new_columns(1, kMany);
  const ggml_tensor* result =
      add(ggml_mul_mat_id(context_.get(), new_experts(GetParam()), columns, new_choices(kMany)));
  allocate();
  fill(columns);
  expect_as_stock(result, 3);
}

INSTANTIATE_TEST_SUITE_P(All, ProductNodesOfType, testing::ValuesIn(kProductTypes),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

TEST_F(ProductNodesTest, CountColumnsOfAllDimensions) {
  ggml_tensor* columns = new_columns(11, 3);
  const ggml_tensor* result =
      add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q8_0), columns));
  allocate();
  fill(columns);
  expect_as_stock(result, 2);
}

TEST_F(ProductNodesTest, ReadColumnsThatAreApart) {
  ggml_tensor* all = new_columns(2 * kMany);
  ggml_tensor* every_second =
      ggml_view_2d(context_.get(), all, kInner, kMany, 2 * all->nb[1], all->nb[1]);
  const ggml_tensor* result =
      add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q8_0), every_second));
  allocate();
  fill(all);
  expect_as_stock(result, 2);
}

// If a model computes numbers that are not finite, its output must show that.
TEST_P(ProductNodesOfType, ShowNumbersThatAreNotFinite) {
  for (const std::int64_t n_columns : {std::int64_t{1}, std::int64_t{5}, kMany}) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      start_over();
      ggml_tensor* columns = new_columns(n_columns);
      const ggml_tensor* result =
          add(ggml_mul_mat(context_.get(), new_weights(GetParam()), columns));
      allocate();
      fill(columns);
      ggml_backend_tensor_set(columns, &bad, 77 * sizeof(float), sizeof(float));  // column 0
      if (compute(true) == 0) continue;                                           // stock's
      const std::vector<float> got = read(result);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::isfinite(got[i]), i >= kRows) << n_columns << " columns: " << i;
      }
    }
  }
}

// Whatever shape a model has.
TEST_F(ProductNodesTest, GiveWhatStockGivesForRandomShapes) {
  std::mt19937 random(7);
  const auto draw = [&random](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int i = 0; i < 150; ++i) {
    start_over();
    const ggml_type type = kProductTypes[draw(0, std::ssize(kProductTypes) - 1)];
    const std::int64_t n_inner = draw(1, 6) * std::max<std::int64_t>(32, ggml_blck_size(type));
    const std::int64_t n_rows = draw(1, 300);
    const std::int64_t n_columns = draw(1, 2) == 1 ? draw(1, 40) : draw(32, 300);
    const bool has_experts = draw(1, 3) == 1;
    SCOPED_TRACE(testing::Message() << ggml_type_name(type) << ' ' << n_rows << 'x' << n_inner
                                    << ' ' << n_columns << (has_experts ? " with experts" : ""));
    ggml_tensor* weights = ggml_new_tensor_3d(weights_context_.get(), type, n_inner, n_rows,
                                              has_experts ? kExperts : 1);
    ggml_tensor* columns =
        ggml_new_tensor_3d(context_.get(), GGML_TYPE_F32, n_inner, has_experts ? 1 : n_columns,
                           has_experts ? n_columns : 1);
    const ggml_tensor* result =
        add(has_experts ? ggml_mul_mat_id(context_.get(), weights, columns, new_choices(n_columns))
                        : ggml_mul_mat(context_.get(), weights, columns));
    allocate();
    fill(columns);
    expect_as_stock(result, std::nullopt);
    if (HasFailure()) return;
  }
}

// Queries, keys and values are products of the same columns: they are packed once.
TEST_F(ProductNodesTest, ShareColumns) {
  ggml_tensor* columns = new_columns(kMany);
  ggml_tensor* first = ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q8_0), columns);
  ggml_tensor* second = ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q4_K), columns);
  const ggml_tensor* result = add(ggml_mul(context_.get(), first, second));
  allocate();
  fill(columns);
  // Without AMX the two types want their columns packed in different ways.
  expect_as_stock(result, pack_alike(GGML_TYPE_Q8_0, GGML_TYPE_Q4_K) ? 3 : 4);
}

TEST_F(ProductNodesTest, ShareColumnsOfOneType) {
  ggml_tensor* columns = new_columns(kMany);
  ggml_tensor* first = ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q4_K), columns);
  ggml_tensor* second = ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q4_K), columns);
  const ggml_tensor* result = add(ggml_mul(context_.get(), first, second));
  allocate();
  fill(columns);
  expect_as_stock(result, 3);
}

// A node between two products may write over their columns.
TEST_F(ProductNodesTest, PackColumnsAgainThatWereOverwritten) {
  ggml_tensor* columns = new_columns(kMany);
  ggml_tensor* before = add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q8_0), columns));
  add(ggml_scale_inplace(context_.get(), columns, 3));
  ggml_tensor* after = add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_Q8_0), columns));
  const ggml_tensor* result = add(ggml_add(context_.get(), before, after));
  allocate();
  fill(columns);
  const std::vector<float> kept = read(columns);
  EXPECT_EQ(compute(false), 0);
  const std::vector<float> wanted = read(result);
  ggml_backend_tensor_set(columns, kept.data(), 0, ggml_nbytes(columns));
  EXPECT_EQ(compute(true), 4);
  const std::vector<float> got = read(result);
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 3);
}

// All experts of a token multiply its column, or each has one of its own.
TEST_F(ProductNodesTest, MultiplyColumnsOfEachExpert) {
  ggml_tensor* columns = new_columns(kRanks, kMany);
  const ggml_tensor* result = add(
      ggml_mul_mat_id(context_.get(), new_experts(GGML_TYPE_Q8_0), columns, new_choices(kMany)));
  allocate();
  fill(columns);
  expect_as_stock(result, 3);
}

// The gate and what it opens are products of the same columns by the same experts.
TEST_F(ProductNodesTest, ShareColumnsOfExperts) {
  ggml_tensor* columns = new_columns(1, kMany);
  ggml_tensor* choices = new_choices(kMany);
  ggml_tensor* gate =
      ggml_mul_mat_id(context_.get(), new_experts(GGML_TYPE_Q4_K), columns, choices);
  ggml_tensor* up = ggml_mul_mat_id(context_.get(), new_experts(GGML_TYPE_Q4_K), columns, choices);
  const ggml_tensor* result = add(ggml_mul(context_.get(), gate, up));
  allocate();
  fill(columns);
  expect_as_stock(result, 4);
}

TEST_F(ProductNodesTest, FailWhereARouterChoseNoExpert) {
  ggml_tensor* columns = new_columns(1, kMany);
  add(ggml_mul_mat_id(context_.get(), new_experts(GGML_TYPE_Q8_0), columns, new_choices(kMany)));
  allocate();
  fill(columns);
  const std::int32_t no_expert = kExperts;
  ggml_backend_tensor_set(choices_, &no_expert, 0, sizeof(no_expert));
  EXPECT_EQ(compute(true), 3);
  EXPECT_EQ(shadow_.end(), GGML_STATUS_ALLOC_FAILED);
}

TEST_P(ProductNodesOfType, GiveWhatStockGivesForFewColumns) {
  for (const std::int64_t n_columns : {1, 3, 8}) {
    start_over();
    ggml_tensor* columns = new_columns(n_columns);
    const ggml_tensor* result = add(ggml_mul_mat(context_.get(), new_weights(GetParam()), columns));
    allocate();
    fill(columns);
    expect_as_stock(result, can_dot(GetParam()) ? 2 : 0);
  }
}

TEST_P(ProductNodesOfType, GiveWhatStockGivesForFewTokensOfExperts) {
  for (const std::int64_t n_each : {std::int64_t{1}, kRanks}) {  // columns of a token
    start_over();
    ggml_tensor* columns = new_columns(n_each, 3);
    ggml_tensor* choices = new_choices(3);
    ggml_tensor* gate = ggml_mul_mat_id(context_.get(), new_experts(GetParam()), columns, choices);
    ggml_tensor* up = ggml_mul_mat_id(context_.get(), new_experts(GetParam()), columns, choices);
    const ggml_tensor* result = add(ggml_add(context_.get(), gate, up));
    allocate();
    fill(columns);
    expect_as_stock(result, can_dot(GetParam()) ? 3 : 0);
  }
}

// Products that stay stock's.
// Stock's own layouts are in buffers that are not the host's. So is the compressed cache.
TEST_F(ProductNodesTest, SayOnceWhatIsInTheWay) {
  KvBufferType other{Scheme()};
  const ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(other.handle(), 1 << 20));
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  ggml_tensor* weights = new_weights(GGML_TYPE_Q8_0);
  weights->buffer = buffer.get();
  weights->data = ggml_backend_buffer_get_base(buffer.get());
  add(ggml_mul_mat(context_.get(), weights, new_columns(kMany)));
  std::string said;
  ggml_log_set([](ggml_log_level, const char* line,
                  void* text) { *static_cast<std::string*>(text) += line; },
               &said);
  ProductNodes products;
  products.plan(graph_);
  EXPECT_EQ(products.n_products(), 0U);
  EXPECT_NE(said.find("start with --no-repack"), std::string::npos) << said;
  said.clear();
  products.plan(graph_);
  ggml_log_set(nullptr, nullptr);
  EXPECT_EQ(said, "");
}

TEST_F(ProductNodesTest, LeaveWeightsInF32) {
  ggml_tensor* columns = new_columns(kMany);
  const ggml_tensor* result =
      add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_F32), columns));
  allocate();
  fill(columns);
  expect_as_stock(result, 0);
}

// ggml repeats columns if there are fewer than experts of a token.
TEST_F(ProductNodesTest, LeaveColumnsThatAreRepeated) {
  ggml_tensor* columns = new_columns(2, kMany);
  choices_ = ggml_new_tensor_2d(context_.get(), GGML_TYPE_I32, 4, kMany);
  const ggml_tensor* result =
      add(ggml_mul_mat_id(context_.get(), new_experts(GGML_TYPE_Q8_0), columns, choices_));
  allocate();
  fill(columns);
  expect_as_stock(result, 0);
}

TEST_F(ProductNodesTest, LeaveWhatIsNoWeight) {
  ggml_tensor* columns = new_columns(kMany);
  const ggml_tensor* result =
      add(ggml_mul_mat(context_.get(), new_weights(GGML_TYPE_F16), columns));
  allocate(GGML_BACKEND_BUFFER_USAGE_COMPUTE);
  fill(columns);
  expect_as_stock(result, 0);
}

}  // namespace
}  // namespace slipstream::turbo
