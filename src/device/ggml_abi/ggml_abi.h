// The structs between ggml and its backends, as ggml 0.27.0 (backend API version 3) lays them out.
//
// ggml packages no header for them, so they are declared here, in ggml's style. Before any of them
// is used, probe.h compares each with the answers of the public functions for the stock CPU
// backend. A backend fills them with function pointers; those marked "(optional)" may be null.
//
// Threads: immutable.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

namespace slipstream::turbo {
inline constexpr int kBackendApiVersion = 3;
}  // namespace slipstream::turbo

struct ggml_backend_buffer_type_i {
  const char* (*get_name)(ggml_backend_buffer_type_t buft);
  ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);
  void (*alloc_buffer_n)();  // (optional) never set here, so its parameters do not matter
  size_t (*get_alignment)(ggml_backend_buffer_type_t buft);
  size_t (*get_max_size)(ggml_backend_buffer_type_t buft);  // (optional)
  size_t (*get_alloc_size)(ggml_backend_buffer_type_t buft,
                           const ggml_tensor* tensor);  // (optional)
  void (*get_alloc_size_n)();                           // (optional) never set here either
  bool (*is_host)(ggml_backend_buffer_type_t buft);     // (optional)
};

struct ggml_backend_buffer_type {
  ggml_backend_buffer_type_i iface;
  ggml_backend_dev_t device;
  void* context;
};

struct ggml_backend_buffer_i {
  void (*free_buffer)(ggml_backend_buffer_t buffer);  // (optional)
  void* (*get_base)(ggml_backend_buffer_t buffer);
  ggml_status (*init_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor);  // (optional)
  void (*memset_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor, uint8_t value,
                        size_t offset, size_t size);
  void (*set_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data,
                     size_t offset, size_t size);
  void (*get_tensor)(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data,
                     size_t offset, size_t size);
  void (*set_tensor_2d)(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data,
                        size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                        size_t stride_data);  // (optional)
  void (*get_tensor_2d)(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data,
                        size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                        size_t stride_data);  // (optional)
  // (optional) dst is in this buffer, src in any buffer. False: the caller copies with get_tensor
  // and set_tensor.
  bool (*cpy_tensor)(ggml_backend_buffer_t buffer, const ggml_tensor* src, ggml_tensor* dst);
  void (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
  void (*reset)(ggml_backend_buffer_t buffer);  // (optional)
};

struct ggml_backend_buffer {
  ggml_backend_buffer_i iface;
  ggml_backend_buffer_type_t buft;
  void* context;
  size_t size;
  ggml_backend_buffer_usage usage;
};

struct ggml_backend_i {
  const char* (*get_name)(ggml_backend_t backend);
  void (*free)(ggml_backend_t backend);
  void (*set_tensor_async)();     // (optional) this and all optional ones below are never set here
  void (*get_tensor_async)();     // (optional)
  void (*set_tensor_2d_async)();  // (optional)
  void (*get_tensor_2d_async)();  // (optional)
  void (*cpy_tensor_async)();     // (optional)
  void (*synchronize)(ggml_backend_t backend);  // (optional)
  void (*graph_plan_create)();                  // (optional)
  void (*graph_plan_free)();                    // (optional)
  void (*graph_plan_update)();                  // (optional)
  void (*graph_plan_compute)();                 // (optional)
  ggml_status (*graph_compute)(ggml_backend_t backend, ggml_cgraph* graph);
  void (*event_record)();    // (optional)
  void (*event_wait)();      // (optional)
  void (*graph_optimize)();  // (optional)
};

struct ggml_backend {
  ggml_guid_t guid;
  ggml_backend_i iface;
  ggml_backend_dev_t device;
  void* context;
};

struct ggml_backend_device_i {
  const char* (*get_name)(ggml_backend_dev_t dev);
  const char* (*get_description)(ggml_backend_dev_t dev);
  void (*get_memory)(ggml_backend_dev_t dev, size_t* free, size_t* total);
  enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t dev);
  void (*get_props)(ggml_backend_dev_t dev, ggml_backend_dev_props* props);
  ggml_backend_t (*init_backend)(ggml_backend_dev_t dev, const char* params);
  ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t dev);
  ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t dev);  // (optional)
  ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t dev, void* ptr, size_t size,
                                                size_t max_tensor_size);  // (optional)
  bool (*supports_op)(ggml_backend_dev_t dev, const ggml_tensor* op);
  bool (*supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
  bool (*offload_op)(ggml_backend_dev_t dev, const ggml_tensor* op);  // (optional)
  void (*event_new)();          // (optional) this and the next two are never set here
  void (*event_free)();         // (optional)
  void (*event_synchronize)();  // (optional)
};

struct ggml_backend_device {
  ggml_backend_device_i iface;
  ggml_backend_reg_t reg;
  void* context;
};

struct ggml_backend_reg_i {
  const char* (*get_name)(ggml_backend_reg_t reg);
  size_t (*get_device_count)(ggml_backend_reg_t reg);
  ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
  void* (*get_proc_address)(ggml_backend_reg_t reg, const char* name);  // (optional)
};

struct ggml_backend_reg {
  int api_version;
  ggml_backend_reg_i iface;
  void* context;
};

extern "C" {
// libggml-base exports this function but declares it in no public header.
ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft,
                                               ggml_backend_buffer_i iface, void* context,
                                               size_t size);
}
