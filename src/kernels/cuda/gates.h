// What parts, joins and adds rows around gates on CUDA (recurrent_args.h), numerics class exact;
// sigmoid_gate is in elementwise.h. Each hash function returns the source hash of their file. Plain
// types only. Elements do not influence each other.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

void split_gate_exact(const SplitGateArgs& args, KernelContext& context);
void concat_exact(const ConcatArgs& args, KernelContext& context);
// The product is rounded before it is added.
void gated_add_exact(const GatedAddArgs& args, KernelContext& context);

[[nodiscard]] const char* gates_exact_hash();

}  // namespace reckon::kernels::cuda
