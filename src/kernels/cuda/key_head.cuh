// Which key head a value head of the gated delta rule reads.
#pragma once

#include <cuda_runtime.h>

#include "kernels/recurrent_args.h"

namespace reckon::kernels::cuda {

__device__ __forceinline__ int64_t key_head_of(const GatedDeltaRuleArgs& args, int64_t value_head) {
  return args.key_order == KeyHeadOrder::kTiled ? value_head % args.key_heads
                                                : value_head / (args.value_heads / args.key_heads);
}

}  // namespace reckon::kernels::cuda
