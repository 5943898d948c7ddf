// The exact matmuls (canonical_order.h) and those of routed experts, by the same kernels
// (expert_matmul.h), of weights in rows as tensor/dtype.h packs them or in
// panels (kernels/panels.h); variants.cpp says which types each takes. Each hash function returns
// the source hash of its file. Plain types only.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr const char* kExactScalar = "exact_scalar";
constexpr const char* kExactAvx2 = "exact_avx2";
constexpr const char* kExactAvx512 = "exact_avx512";
constexpr const char* kExactPanelsAvx2 = "exact_panels_avx2";
constexpr const char* kExactPanelsAvx512 = "exact_panels_avx512";

// Portable C++; its fused multiply-adds are library calls where the target has no instruction.
void matmul_exact_scalar(const MatmulArgs& args, KernelContext& context);
void expert_swiglu_exact_scalar(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_exact_scalar(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_exact_scalar_hash();

// AVX2, FMA and F16C.
void matmul_exact_avx2(const MatmulArgs& args, KernelContext& context);
void expert_swiglu_exact_avx2(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_exact_avx2(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_exact_avx2_hash();

// AVX-512 F, BW, VL and VNNI.
void matmul_exact_avx512(const MatmulArgs& args, KernelContext& context);
void expert_swiglu_exact_avx512(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_exact_avx512(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_exact_avx512_hash();

// Panels; AVX2, FMA and F16C.
void matmul_exact_panels_avx2(const MatmulArgs& args, KernelContext& context);
void expert_swiglu_exact_panels_avx2(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_exact_panels_avx2(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_exact_panels_avx2_hash();

// Panels; AVX-512 F, BW, VL and VNNI.
void matmul_exact_panels_avx512(const MatmulArgs& args, KernelContext& context);
void expert_swiglu_exact_panels_avx512(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_exact_panels_avx512(const ExpertMatmulCombineArgs& args,
                                        KernelContext& context);
[[nodiscard]] const char* matmul_exact_panels_avx512_hash();

}  // namespace reckon::kernels::cpu
