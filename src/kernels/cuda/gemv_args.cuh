// What the gemv kernels are launched with (gemv_launch.cu).
#pragma once

#include <cstdint>

#include "kernels/cuda/gemv_geometry.h"

namespace reckon::kernels::cuda {

struct GemvKernelArgs {
  const float* x;
  int64_t x_stride;
  const uint8_t* tiles[kGemvMaxWeights];
  float* out[kGemvMaxWeights];
  int64_t out_stride[kGemvMaxWeights];
  int n[kGemvMaxWeights];
  int first_unit[kGemvMaxWeights];  // of each weight in the launch's units; parts == 1 only
  int weight_count;
  int parts;  // weights a unit: 2 for SwiGLU
  int units;  // strips, over all weights (of one weight for SwiGLU)
  int rows, slab_rows, k, k_tiles;
  int cluster, slots, early_slots, stage_tiles, stages;
  bool x_aligned;  // rows of x may be read 16 bytes at a time
  GemvShared shared;
};

// A strip of one weight.
struct GemvStrip {
  int weight;
  int index;
};

__device__ __forceinline__ GemvStrip find_strip(const GemvKernelArgs& args, int unit, int part) {
  if (args.parts > 1) return {part, unit};
  int weight = 0;
  if (args.weight_count > 1 && unit >= args.first_unit[1]) weight = 1;
  if (args.weight_count > 2 && unit >= args.first_unit[2]) weight = 2;
  return {weight, unit - args.first_unit[weight]};
}

}  // namespace reckon::kernels::cuda
