// Matmuls of routed experts, by the kernels of plain matmuls: the rows that selected an expert are
// one piece of work against its matrix, and all pieces of a call share the threads, so that each
// expert's weights are streamed once. A row of an exact product has the bits that the plain matmul
// gives it, whatever else selected its expert (canonical_order.h), and results are added in the
// order of the selection.
//
// Plain types only; the functions are defined in expert_matmul.cpp, for every machine.
#pragma once

#include <cstdint>

#include "kernels/cpu/matmul_work.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// How a kernel keeps activations (matmul_layout.h; slots: expert_fast.h).
enum class ActivationLayout : uint8_t { kRows, kTiles, kPlanes, kPanels, kSlots };

// What a kernel file gives: how it does one piece, and out = silu(gate) * up.
struct ExpertKernel {
  ActivationLayout layout;
  PlanMatmul plan;
  void (*swiglu)(const float* gate, const float* up, float* out, int64_t n);
};

void run_expert_swiglu(const ExpertMatmulSwigluArgs& args, KernelContext& context,
                       const ExpertKernel& kernel);
void run_expert_combine(const ExpertMatmulCombineArgs& args, KernelContext& context,
                        const ExpertKernel& kernel);

// Scratch of such a call (op.h): the order of its rows, its products, and what the kernel wants for
// the activations of every row and expert and for unpacked weights.
[[nodiscard]] uint64_t expert_matmul_scratch_bytes(ActivationLayout layout, const OpCall& call,
                                                   const KernelParams& params, int threads);

// AVX2 and FMA; e^x by exp_avx2.h.
void swiglu_columns_avx2(const float* gate, const float* up, float* out, int64_t n);

}  // namespace reckon::kernels::cpu
