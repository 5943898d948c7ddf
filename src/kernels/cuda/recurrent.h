// The ops of recurrent layers on CUDA (recurrent_args.h), numerics class exact: the gated delta
// rule, the causal convolution before it and the norm behind it. Plain types and strings only. Each
// hash function returns the source hash of its file.
//
// Positions come from the queue's StepInput, so that a captured graph can be replayed for another
// step. A row's bits depend on its position and on what came before it alone: passes of any size
// and plain decoding agree, and so does going on from an earlier position.
#pragma once

#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// A sum over taps in ascending order of positions by fma from 0, then silu.
void causal_conv_exact(const CausalConvArgs& args, KernelContext& context);
[[nodiscard]] const char* causal_conv_exact_hash();

// Row by row by the decode recurrence. Order of the sums over key_dim: lane l of a warp adds the
// rows l, l + 32, ... of the state by fma from 0, then xor 16, 8, 4, 2, 1. key_dim up to 256.
void gated_delta_rule_exact(const GatedDeltaRuleArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_delta_rule_exact_hash();
// For Variant.
[[nodiscard]] std::string supports_gated_delta_rule(const OpCall& call);

// The bits of rms_norm of up to kWarpRow elements (row_math.cuh), times silu of the gate; longer
// rows have 32 workers, too.
void gated_rms_norm_exact(const GatedRmsNormArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_rms_norm_exact_hash();

}  // namespace reckon::kernels::cuda
