// Rotary position embedding on the CPU: the reference's arithmetic, bit for bit, in the order of
// memory and with rows shared out to threads.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// Portable C++. Needs rope_scratch_bytes() of scratch.
void rope_exact_scalar(const RopeArgs& args, KernelContext& context);
[[nodiscard]] const char* rope_exact_scalar_hash();

// The frequencies of a call, then cosines and sines of one row a thread.
[[nodiscard]] uint64_t rope_scratch_bytes(int64_t head_dim, int threads);

}  // namespace reckon::kernels::cpu
