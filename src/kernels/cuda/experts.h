// The ops of routed experts on CUDA (expert_args.h), numerics class exact. Plain types and strings
// only. Each hash function returns the source hash of its file.
//
// The experts' matrices are tiles (weight_tiles.h) of one weight of experts * n rows. The product
// of a row and an expert has the bits of the plain matmul by the variant of the same name with that
// expert's matrix (matmul_exact.h), whatever other rows there are. How the work is dealt out
// depends on the number of rows and of experts alone, never on a selection.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// The softmax's sums are float64. Experts with a logit that is no number come last.
void route_exact(const RouteArgs& args, KernelContext& context);
[[nodiscard]] const char* route_exact_hash();

// Activations rounded to half by a power-of-two scale per row and 64 columns, or for bf16 weights
// as the sum of two bf16: p4, p8, f16, bf16.
inline constexpr const char* kExpertsMma = "exact_mma";
void expert_matmul_swiglu_exact_mma(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_matmul_combine_exact_mma(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* experts_mma_hash();

// Activations in float32: every type. Registered as exact and as the reference.
inline constexpr const char* kExpertsSimt = "exact_simt";
void expert_matmul_swiglu_exact_simt(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_matmul_combine_exact_simt(const ExpertMatmulCombineArgs& args, KernelContext& context);
void expert_matmul_swiglu_reference(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_matmul_combine_reference(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* experts_simt_hash();

// For Variant, of both expert matmuls: up to 4096 experts.
[[nodiscard]] std::string supports_experts_mma(const OpCall& call);
[[nodiscard]] std::string supports_experts_simt(const OpCall& call);
[[nodiscard]] uint64_t experts_mma_scratch_bytes(const OpCall& call, const KernelParams& params,
                                                 int threads);
[[nodiscard]] uint64_t experts_simt_scratch_bytes(const OpCall& call, const KernelParams& params,
                                                  int threads);

}  // namespace reckon::kernels::cuda
