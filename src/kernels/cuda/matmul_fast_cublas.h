// fast_cublas: matmuls for prefill through cuBLASLt. Activations are rounded to 16 bits once a
// call, weight tiles are turned back into rows of at most 192 MiB at a time, and the library
// multiplies with float32 accumulators and a float32 result. Numerics class fast.
//
// Weights are tiles (weight_tiles.h) of p4, p8, f16 or bf16. Plain header: no CUDA types.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

constexpr const char* kFastCublas = "fast_cublas";

// `queue(context).matmul_library` must be a BlasLt (blaslt.h).
void matmul_fast_cublas(const MatmulArgs& args, KernelContext& context);
void matmul_group_fast_cublas(const MatmulGroupArgs& args, KernelContext& context);
void matmul_swiglu_fast_cublas(const MatmulSwigluArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_cublas_hash();

// For Variant: of a matmul, a matmul_group or a matmul_swiglu.
[[nodiscard]] std::string supports_fast_cublas(const OpCall& call);
[[nodiscard]] uint64_t fast_cublas_scratch_bytes(const OpCall& call, const KernelParams& params,
                                                 int threads);
[[nodiscard]] int fast_cublas_preference(const OpCall& call);

}  // namespace reckon::kernels::cuda
