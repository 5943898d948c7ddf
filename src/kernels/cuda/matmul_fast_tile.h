// fast_tile: matmuls for prefill that take weights as tiles (weight_tiles.h) of p4, p8, f16 or
// bf16, unpack them in flight and multiply them with the tensor cores; no other copy of them ever
// lies in memory. Numerics class fast.
//
// On compute capability 9.0 the products run on wgmma, elsewhere (8.0 and up) on mma.m16n8k16.
// Plain header: no CUDA types.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/device.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

constexpr const char* kFastTile = "fast_tile";

void matmul_fast_tile(const MatmulArgs& args, KernelContext& context);
void matmul_group_fast_tile(const MatmulGroupArgs& args, KernelContext& context);
void matmul_swiglu_fast_tile(const MatmulSwigluArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_tile_hash();

// For Variant: of a matmul, a matmul_group or a matmul_swiglu.
[[nodiscard]] std::string supports_fast_tile(const OpCall& call);
[[nodiscard]] uint64_t fast_tile_scratch_bytes(const OpCall& call, const KernelParams& params,
                                               int threads);
[[nodiscard]] int fast_tile_preference(const OpCall& call);
// A tile that auto takes anyway, or that the device's kernels do not have, becomes auto.
[[nodiscard]] KernelParams fast_tile_effective(const OpCall& call, const KernelParams& wanted,
                                               const Device& device);

}  // namespace reckon::kernels::cuda
