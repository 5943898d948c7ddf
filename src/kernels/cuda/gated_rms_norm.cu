// One warp a row: rows are the heads of a delta net, of 128 elements or so. They are read a second
// time to be scaled, which finds them in the cache.
#include "kernels/cuda/gated_rms_norm.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kWarps = 4;

__device__ __forceinline__ float element(float x, float scale, float weight, float gate) {
  return __fmul_rn(rms_element(x, scale, weight), silu(gate));
}

template <bool kVector>
__global__ void __launch_bounds__(kWarps * 32)
    normalise(const __grid_constant__ GatedRmsNormArgs args) {
  release_next();
  wait_for_previous();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) return;
  const int lane = threadIdx.x % 32;
  const int64_t k = args.k;
  const int64_t chunks = (k + 3) / 4;
  const float* x = args.x + row * k;
  float sum = 0;
  for (int64_t chunk = lane; chunk < chunks; chunk += 32) {
    sum = add_squares(sum, load_chunk<kVector>(x, chunk, k));
  }
  const float scale = rms_scale(warp_sum(sum), k, args.epsilon);
  for (int64_t chunk = lane; chunk < chunks; chunk += 32) {
    const float4 v = load_chunk<kVector>(x, chunk, k);
    const float4 z = load_chunk<kVector>(args.z + row * k, chunk, k);
    const float4 w = load_chunk<kVector>(args.weight, chunk, k);
    store_chunk<kVector>(args.out + row * k, chunk, k,
                         {element(v.x, scale, w.x, z.x), element(v.y, scale, w.y, z.y),
                          element(v.z, scale, w.z, z.z), element(v.w, scale, w.w, z.w)});
  }
}

}  // namespace

void gated_rms_norm_exact(const GatedRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  const bool vector = args.k % 4 == 0 && aligned_16(args.x) && aligned_16(args.z) &&
                      aligned_16(args.weight) && aligned_16(args.out);
  const dim3 grid(static_cast<uint32_t>((args.rows + kWarps - 1) / kWarps));
  launch(context, vector ? normalise<true> : normalise<false>, grid, dim3(kWarps * 32), 0, args);
}

const char* gated_rms_norm_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
