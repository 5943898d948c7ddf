// RMSNorm on CUDA, numerics class exact. Each hash function returns the source hash of its file.
// Plain types only. Any rows, any k of at least 1; a row's bits depend on that row and k alone.
//
// add_rms_norm gives the bits of add followed by rms_norm. Order of the sums: row_math.cuh.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

void rms_norm_exact(const RmsNormArgs& args, KernelContext& context);
[[nodiscard]] const char* rms_norm_exact_hash();

void add_rms_norm_exact(const AddRmsNormArgs& args, KernelContext& context);
[[nodiscard]] const char* add_rms_norm_exact_hash();

}  // namespace reckon::kernels::cuda
