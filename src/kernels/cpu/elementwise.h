// Element-by-element kernels of the CPU. Each hash function returns the source hash of its file.
// Plain types only.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// AVX2 and FMA; e^x by exp_avx2.h.
void swiglu_exact_avx2(const SwigluArgs& args, KernelContext& context);
[[nodiscard]] const char* swiglu_exact_avx2_hash();
void geglu_exact_avx2(const GegluArgs& args, KernelContext& context);
[[nodiscard]] const char* geglu_exact_avx2_hash();
void sigmoid_gate_exact_avx2(const SigmoidGateArgs& args, KernelContext& context);
[[nodiscard]] const char* sigmoid_gate_exact_avx2_hash();
// The same bits in any order, and those of the reference.
void add_exact_avx2(const AddArgs& args, KernelContext& context);
[[nodiscard]] const char* add_exact_avx2_hash();

}  // namespace reckon::kernels::cpu
