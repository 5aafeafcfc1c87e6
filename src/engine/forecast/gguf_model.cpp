#include "engine/forecast/gguf_model.h"

#include <fcntl.h>
#include <llama.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <limits>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

// Accepts regular files only: opening a pipe would wait, and a directory has no size.
Result<std::uint64_t> check_file(const std::filesystem::path& path) {
  const Result<UniqueFd> fd = open_file(path.string(), O_RDONLY | O_NONBLOCK);
  if (!fd) return std::unexpected(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) {
    return fail_errno(errno, format_text("cannot look at {}", path.string()));
  }
  std::array<std::byte, 4> magic{};
  if (!S_ISREG(status.st_mode) || !read_exactly(fd->get(), magic, 0) ||
      std::memcmp(magic.data(), GGUF_MAGIC, magic.size()) != 0) {
    return fail(Code::kInvalidArgument, format_text("{} is not a GGUF file", path.string()));
  }
  return static_cast<std::uint64_t>(status.st_size);
}

Result<gguf_context_ptr> read_header(const std::filesystem::path& path) {
  if (const Result<std::uint64_t> size = check_file(path); !size) {
    return std::unexpected(size.error());
  }
  gguf_context_ptr header;
  try {
    header.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  } catch (const std::exception&) {  // sizes that do not fit into memory
    header = nullptr;
  }
  if (!header) {
    return fail(Code::kCorrupt, format_text("the header of {} is damaged", path.string()));
  }
  return header;
}

std::optional<std::int64_t> to_integer(gguf_type type, const void* data) {
  const auto read = [&]<typename T>(T value) -> std::optional<std::int64_t> {
    std::memcpy(&value, data, sizeof(T));
    if (!std::in_range<std::int64_t>(value)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  };
  switch (type) {
    case GGUF_TYPE_BOOL:  // stored as int8
    case GGUF_TYPE_INT8: return read(std::int8_t{});
    case GGUF_TYPE_UINT8: return read(std::uint8_t{});
    case GGUF_TYPE_INT16: return read(std::int16_t{});
    case GGUF_TYPE_UINT16: return read(std::uint16_t{});
    case GGUF_TYPE_INT32: return read(std::int32_t{});
    case GGUF_TYPE_UINT32: return read(std::uint32_t{});
    case GGUF_TYPE_INT64: return read(std::int64_t{});
    case GGUF_TYPE_UINT64: return read(std::uint64_t{});
    default: return std::nullopt;
  }
}

std::size_t integer_size(gguf_type type) {
  switch (type) {
    case GGUF_TYPE_BOOL:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_UINT8: return 1;
    case GGUF_TYPE_INT16:
    case GGUF_TYPE_UINT16: return 2;
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_UINT32: return 4;
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_UINT64: return 8;
    default: return 0;
  }
}

// Bytes of a tensor; nullopt if they overflow: gguf's own sizes may have wrapped around.
std::optional<std::uint64_t> tensor_bytes(const GgufTensor& tensor) {
  const std::int64_t block = ggml_blck_size(tensor.type);
  if (block <= 0 || tensor.ne[0] % block != 0) return std::nullopt;
  std::uint64_t n_bytes = ggml_type_size(tensor.type);
  for (std::size_t i = 0; i < tensor.ne.size(); ++i) {
    const std::int64_t n = i == 0 ? tensor.ne[0] / block : tensor.ne.at(i);
    if (n < 1 || __builtin_mul_overflow(n_bytes, static_cast<std::uint64_t>(n), &n_bytes)) {
      return std::nullopt;
    }
  }
  return n_bytes;
}

// The parts after the first of `n_parts`. libllama accepts only files named like this.
Result<std::vector<std::filesystem::path>> other_parts(const std::filesystem::path& first,
                                                       int n_parts) {
  std::array<char, PATH_MAX> prefix{};
  if (llama_split_prefix(prefix.data(), prefix.size(), first.c_str(), 0, n_parts) <= 0) {
    return fail(Code::kInvalidArgument,
                format_text("{} is the first of {} parts and not named NAME-00001-of-{:05}.gguf",
                            first.string(), n_parts, n_parts));
  }
  std::vector<std::filesystem::path> paths;
  for (int part = 1; part < n_parts; ++part) {
    std::array<char, PATH_MAX> path{};
    llama_split_path(path.data(), path.size(), prefix.data(), part, n_parts);
    std::error_code error;
    // Check before the next name is made: a damaged header may claim 65,535 parts.
    if (!std::filesystem::exists(path.data(), error)) {
      return fail(Code::kNotFound, format_text("part {} of {} of the model is missing: {}",
                                               part + 1, n_parts, path.data()));
    }
    paths.emplace_back(path.data());
  }
  return paths;
}

}  // namespace

Result<GgufModel> GgufModel::open(const std::filesystem::path& path) {
  GgufModel model;
  Result<gguf_context_ptr> header = read_header(path);
  if (!header) return std::unexpected(header.error());
  model.header_ = std::move(*header);
  if (model.integer("split.no").value_or(0) != 0) {
    return fail(Code::kInvalidArgument,
                format_text("{} is not the first part of its model: name that", path.string()));
  }
  model.architecture_ = model.text("general.architecture").value_or("");
  if (model.architecture_.empty()) {
    return fail(Code::kCorrupt, format_text("{} names no architecture", path.string()));
  }
  if (Result<void> added = model.add_tensors(*model.header_, path); !added) {
    return std::unexpected(added.error());
  }
  const std::int64_t n_parts = model.integer("split.count").value_or(1);
  if (n_parts > 1 && n_parts <= std::numeric_limits<std::uint16_t>::max()) {
    const Result<std::vector<std::filesystem::path>> parts =
        other_parts(path, static_cast<int>(n_parts));
    if (!parts) return std::unexpected(parts.error());
    for (const std::filesystem::path& part : *parts) {
      const Result<gguf_context_ptr> part_header = read_header(part);
      if (!part_header) return std::unexpected(part_header.error());
      if (Result<void> added = model.add_tensors(**part_header, part); !added) {
        return std::unexpected(added.error());
      }
    }
  }
  std::ranges::sort(model.tensors_, {}, &GgufTensor::name);
  return model;
}

Result<void> GgufModel::add_tensors(const gguf_context& header, const std::filesystem::path& path) {
  const Result<std::uint64_t> file_bytes = check_file(path);
  if (!file_bytes) return std::unexpected(file_bytes.error());
  const std::uint64_t data_offset = gguf_get_data_offset(&header);
  for (std::int64_t i = 0; i < gguf_get_n_tensors(&header); ++i) {
    GgufTensor tensor{.name = gguf_get_tensor_name(&header, i),
                      .type = gguf_get_tensor_type(&header, i),
                      .ne = {},
                      .n_bytes = 0,
                      .file_idx = files_.size(),
                      .file_offset = 0};
    std::copy_n(gguf_get_tensor_ne(&header, i), tensor.ne.size(), tensor.ne.begin());
    const std::optional<std::uint64_t> n_bytes = tensor_bytes(tensor);
    const std::uint64_t offset = gguf_get_tensor_offset(&header, i);
    const bool fits = n_bytes && data_offset <= *file_bytes &&
                      offset <= *file_bytes - data_offset &&
                      *n_bytes <= *file_bytes - data_offset - offset;
    if (!fits) {
      return fail(Code::kCorrupt,
                  format_text("{} is cut off or damaged: its tensor {} does not lie "
                              "within the file",
                              path.string(), tensor.name));
    }
    tensor.n_bytes = *n_bytes;
    tensor.file_offset = data_offset + offset;
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(path);
  return {};
}

const GgufTensor* GgufModel::find_tensor(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &GgufTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

bool GgufModel::has_tensors(std::string_view prefix) const {
  const auto found = std::ranges::lower_bound(tensors_, prefix, {}, &GgufTensor::name);
  return found != tensors_.end() && found->name.starts_with(prefix);
}

std::int64_t GgufModel::find_key(std::string_view key) const {
  std::string full(key);
  if (full.starts_with("%s.")) full.replace(0, 2, architecture_);
  return gguf_find_key(header_.get(), full.c_str());
}

std::optional<std::int64_t> GgufModel::integer(std::string_view key) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(header_.get(), id);
  if (integer_size(type) == 0) return std::nullopt;  // checked first: gguf aborts on other types
  return to_integer(type, gguf_get_val_data(header_.get(), id));
}

std::optional<std::string> GgufModel::text(std::string_view key) const {
  const std::int64_t id = find_key(key);
  if (id < 0 || gguf_get_kv_type(header_.get(), id) != GGUF_TYPE_STRING) return std::nullopt;
  return gguf_get_val_str(header_.get(), id);
}

std::size_t GgufModel::array_size(std::string_view key) const {
  const std::int64_t id = find_key(key);
  if (id < 0 || gguf_get_kv_type(header_.get(), id) != GGUF_TYPE_ARRAY) return 0;
  return gguf_get_arr_n(header_.get(), id);
}

std::optional<std::int64_t> GgufModel::integer_at(std::string_view key, std::size_t idx) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(header_.get(), id) != GGUF_TYPE_ARRAY) return integer(key);
  const gguf_type type = gguf_get_arr_type(header_.get(), id);
  const std::size_t size = integer_size(type);
  if (size == 0 || idx >= gguf_get_arr_n(header_.get(), id)) return std::nullopt;
  const auto* data = static_cast<const std::byte*>(gguf_get_arr_data(header_.get(), id));
  return to_integer(type, data + idx * size);
}

}  // namespace slipstream
