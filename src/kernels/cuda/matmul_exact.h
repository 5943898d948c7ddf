// The exact matmuls of gemv.h as variants: one pass over the weights for up to 16 rows, slabs of
// 16 rows beyond. A row has the same bits in every form (matmul, matmul_group, matmul_swiglu before
// its activation) and for any number of rows. Weights are tiles (weight_tiles.h).
#pragma once

#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// Activations rounded to half (gemv_mma): p4, p8, f16, bf16.
inline constexpr const char* kExactMma = "exact_mma";
void matmul_exact_mma(const MatmulArgs& args, KernelContext& context);
void matmul_group_exact_mma(const MatmulGroupArgs& args, KernelContext& context);
void matmul_swiglu_exact_mma(const MatmulSwigluArgs& args, KernelContext& context);

// Activations in float32 (gemv_simt): every type. Registered as exact and as the reference.
inline constexpr const char* kExactSimt = "exact_simt";
void matmul_exact_simt(const MatmulArgs& args, KernelContext& context);
void matmul_reference(const MatmulArgs& args, KernelContext& context);

[[nodiscard]] const char* matmul_exact_hash();

// For Variant, of all three ops.
[[nodiscard]] std::string supports_exact_mma(const OpCall& call);
[[nodiscard]] std::string supports_exact_simt(const OpCall& call);

}  // namespace reckon::kernels::cuda
