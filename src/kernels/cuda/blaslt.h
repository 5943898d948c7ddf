// cuBLASLt, loaded when first asked for and never linked, so that one binary also runs where the
// library is missing. Only the matrix product that the fast matmuls need.
//
// Ownership: a BlasLt owns a cuBLASLt handle and the algorithms that the library's heuristics chose
// for each shape. It belongs to one queue, which keeps it in Queue::matmul_library; it is not
// thread-safe. Plain header: no CUDA types.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace reckon::kernels::cuda {

// Whether the library can be loaded on this machine. Tried once a process; thread-safe.
[[nodiscard]] bool blaslt_available();
// Why it cannot, one line; "" where it can.
[[nodiscard]] const std::string& blaslt_missing_reason();

enum class BlasLtType : uint8_t { kF16, kBf16 };

// out[r, j] = sum over i of x[r, i] * weight[j, i], accumulated and stored as float32. All in
// device memory, row-major; strides in elements. k, x_stride and weight_stride are multiples of 8
// and x and weight 16-byte aligned, which the tensor cores want.
struct BlasLtMatmul {
  BlasLtType type = BlasLtType::kF16;
  const void* x = nullptr;       // [rows, k]
  const void* weight = nullptr;  // [n, k]
  float* out = nullptr;          // [rows, n]
  int64_t rows = 0, n = 0, k = 0;
  int64_t x_stride = 0, weight_stride = 0, out_stride = 0;
};

class BlasLt {
 public:
  // A handle on the current device.
  [[nodiscard]] static Result<std::unique_ptr<BlasLt>> create();
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  // Enqueues the product on `stream` (a cudaStream_t), with `workspace_bytes` of device memory at
  // `workspace` (256-byte aligned) at its disposal until it has run. Null where it was enqueued,
  // else what went wrong, valid until the next call.
  //
  // The algorithm of a shape is looked up once for a given workspace size and alignment of `out`;
  // so equal calls give equal bits.
  [[nodiscard]] const char* matmul(const BlasLtMatmul& product, void* workspace,
                                   uint64_t workspace_bytes, void* stream);

 private:
  struct State;
  explicit BlasLt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What the heuristics are given on Hopper; NVIDIA's own recommendation for that chip.
inline constexpr uint64_t kBlasLtWorkspaceBytes = uint64_t{32} << 20;

}  // namespace reckon::kernels::cuda
