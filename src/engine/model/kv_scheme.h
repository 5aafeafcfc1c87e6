// KvScheme: how keys and values are stored, by the name that a user gives (--kv).
//
//   f16, q8_0, q4_0, ...            types of stock ggml; q8_0/q4_0: keys and values differ
//   turbo8v4, turbo8, turbo4, ...   types of our plugin: 8-bit keys and 4-bit values, and so on
//   turbo<K>v<V>                    any widths of 0 (f16), 2, 3, 4 and 8 bits
//   turbo4,0-1=turbo8               another scheme for the first two layers
//
// Threads: immutable. Errors: parse_kv_scheme() gives kInvalidArgument with the list of names.
#pragma once

#include <ggml.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/scheme.h"

namespace slipstream {

class KvScheme {
 public:
  KvScheme() = default;  // f16

  [[nodiscard]] const std::string& name() const { return name_; }
  // Whether it needs our plugin.
  [[nodiscard]] bool is_turbo() const { return turbo_.has_value(); }
  // The types of libllama's cache. With the plugin they are f16, the only type it compresses.
  [[nodiscard]] ggml_type key_type() const { return key_type_; }
  [[nodiscard]] ggml_type value_type() const { return value_type_; }
  // The most tokens that a query reads; 0: it reads all.
  [[nodiscard]] std::int64_t attend() const { return turbo_ ? turbo_->attend() : 0; }
  [[nodiscard]] turbo::Bits bits_of_layer(int layer) const {
    return turbo_ ? turbo_->bits_of_layer(layer) : turbo::Bits{};
  }
  // Mean of keys and values, including their scales, in layers without a scheme of their own.
  [[nodiscard]] double bits_per_element(int head_dim = 128) const;

 private:
  friend Result<KvScheme> parse_kv_scheme(std::string_view name);

  std::string name_ = "f16";
  ggml_type key_type_ = GGML_TYPE_F16;
  ggml_type value_type_ = GGML_TYPE_F16;
  std::optional<turbo::Scheme> turbo_;
};

[[nodiscard]] Result<KvScheme> parse_kv_scheme(std::string_view name);

// The plain names, best known first, for help texts and completions.
[[nodiscard]] std::vector<std::string_view> kv_scheme_names();

}  // namespace slipstream
