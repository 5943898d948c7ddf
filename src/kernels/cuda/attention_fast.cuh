// What the fast attentions share: what their kernels are told, and the launch.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

inline constexpr int kAttendRows = 128;  // of one head, to a block

struct Attend {
  const float* q;        // [rows, heads, head_dim]
  const __half* keys;    // [kv_heads, capacity, head_dim]
  const __half* values;  // [kv_heads, capacity, head_dim]
  float* out;            // [rows, heads, head_dim]
  const StepInput* input;
  int64_t capacity;
  int rows, heads, kv_heads;
  float scale;  // with log2(e): queries take it along, so that a score is an exponent of 2
};

struct AttendKernel {
  void (*kernel)(Attend);
  int threads;
  uint32_t shared_bytes;
};

// Launches the kernel for the call's head_dim on a grid of (heads, blocks of rows).
inline void launch_attend(const AttentionArgs& args, const AttendKernel& of_64,
                          const AttendKernel& of_128, KernelContext& context) {
  constexpr float kLog2E = 1.44269504F;
  if (args.head_dim != 64 && args.head_dim != 128) {
    return fail(context, "heads of neither 64 nor 128");
  }
  const AttendKernel& chosen = args.head_dim == 64 ? of_64 : of_128;
  const Attend attend{args.q,
                      static_cast<const __half*>(args.cache_k),
                      static_cast<const __half*>(args.cache_v),
                      args.out,
                      queue(context).input,
                      args.capacity,
                      static_cast<int>(args.rows),
                      static_cast<int>(args.heads),
                      static_cast<int>(args.kv_heads),
                      args.scale * kLog2E};
  launch(context, chosen.kernel,
         dim3(static_cast<uint32_t>(args.heads),
              static_cast<uint32_t>((args.rows + kAttendRows - 1) / kAttendRows)),
         dim3(static_cast<uint32_t>(chosen.threads)), chosen.shared_bytes, attend);
}

}  // namespace reckon::kernels::cuda
