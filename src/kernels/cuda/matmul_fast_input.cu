#include "kernels/cuda/matmul_fast_input.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tensor/blocks.h"

namespace reckon::kernels::cuda {
namespace {

// Columns first and first + 1 of a row, 0 beyond k. `aligned`: k is even.
__device__ float2 two(const float* row, int64_t first, int64_t k, bool aligned) {
  if (aligned && first < k) return *reinterpret_cast<const float2*>(row + first);
  return make_float2(first < k ? row[first] : 0.0f, first + 1 < k ? row[first + 1] : 0.0f);
}

// The largest of the block's values, NaN passed over (it shows in the results).
template <int kThreads>
__device__ float block_maximum(float largest) {
  __shared__ float warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) largest = fmaxf(largest, warps[i]);
  return largest;
}

// The power of two that the row is multiplied with.
__device__ float row_scale(float largest) {
  if ((largest >= 0x1p-4f && largest < 0x1p15f) || largest == 0) return 1;
  if (!(largest < INFINITY)) return 1;
  // Of a subnormal row the largest step that float has will do.
  const int exponent = max(ilogbf(largest), -112);
  return ldexpf(1, 14 - exponent);
}

template <bool kBf16>
__device__ uint32_t rounded(float low, float high) {
  if constexpr (kBf16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
}

// 8 columns that become 16 bytes of the result, piece i of a block of 64.
struct Piece {
  float2 pairs[4];

  template <InputOrder kOrder>
  __device__ void load(const float* row, int64_t piece, int64_t k, bool aligned) {
    const int64_t block = piece / 8 * 64, i = piece % 8;
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      pairs[t] = two(row, block + (kOrder == InputOrder::kRows ? 8 * i + 2 * t : 16 * t + 2 * i), k,
                     aligned);
    }
  }
  __device__ float maximum() const {
    float largest = 0;
#pragma unroll
    for (const float2& pair : pairs) {
      largest = fmaxf(largest, fmaxf(fabsf(pair.x), fabsf(pair.y)));
    }
    return largest;
  }
  template <bool kBf16>
  __device__ uint4 scaled(float scale) const {
    return make_uint4(rounded<kBf16>(pairs[0].x * scale, pairs[0].y * scale),
                      rounded<kBf16>(pairs[1].x * scale, pairs[1].y * scale),
                      rounded<kBf16>(pairs[2].x * scale, pairs[2].y * scale),
                      rounded<kBf16>(pairs[3].x * scale, pairs[3].y * scale));
  }
};

template <InputOrder kOrder>
__device__ int64_t place_of(int64_t r, int64_t piece, int64_t blocks, int64_t padded_rows) {
  if (kOrder == InputOrder::kRows) return r * blocks * 8 + piece;
  return (piece / 8 * padded_rows + r) * 8 + ((piece % 8) ^ (r % 8));
}

// The next kernel of the stream may be launched where it asked to (it waits before it reads what
// this one writes): its first weights are on their way meanwhile.
__device__ void start_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// A block a row, which stays in registers between its maximum and its rounding: kPieces a thread.
// Reading the row twice instead took twice the time from 2,048 rows of 14,336 on, which do not fit
// the cache.
template <bool kBf16, InputOrder kOrder, int kThreads, int kPieces>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(const float* __restrict__ x, int64_t k, int64_t blocks, int64_t padded_rows,
                   uint4* __restrict__ out, float* __restrict__ scales) {
  start_next();
  const int64_t r = blockIdx.x;
  const float* row = x + r * k;
  const bool aligned = k % 2 == 0;
  Piece pieces[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    pieces[i].template load<kOrder>(row, threadIdx.x + i * kThreads, k, aligned);
  }
  float scale = 1;
  if constexpr (!kBf16) {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) largest = fmaxf(largest, pieces[i].maximum());
    scale = row_scale(block_maximum<kThreads>(largest));
    if (threadIdx.x == 0) scales[r] = 1 / scale;
  }
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int64_t piece = threadIdx.x + i * kThreads;
    if (piece >= blocks * 8) continue;
    out[place_of<kOrder>(r, piece, blocks, padded_rows)] = pieces[i].scaled<kBf16>(scale);
  }
}

// Any k: the row is read twice.
template <bool kBf16, InputOrder kOrder>
__global__ void __launch_bounds__(512)
    convert_long_kernel(const float* __restrict__ x, int64_t k, int64_t blocks, int64_t padded_rows,
                        uint4* __restrict__ out, float* __restrict__ scales) {
  start_next();
  const int64_t r = blockIdx.x;
  const float* row = x + r * k;
  const bool aligned = k % 2 == 0;
  Piece current;
  float scale = 1;
  if constexpr (!kBf16) {
    float largest = 0;
    for (int64_t piece = threadIdx.x; piece < blocks * 8; piece += 512) {
      current.template load<kOrder>(row, piece, k, aligned);
      largest = fmaxf(largest, current.maximum());
    }
    scale = row_scale(block_maximum<512>(largest));
    if (threadIdx.x == 0) scales[r] = 1 / scale;
  }
  for (int64_t piece = threadIdx.x; piece < blocks * 8; piece += 512) {
    current.template load<kOrder>(row, piece, k, aligned);
    out[place_of<kOrder>(r, piece, blocks, padded_rows)] = current.scaled<kBf16>(scale);
  }
}

using ConvertKernel = void (*)(const float*, int64_t, int64_t, int64_t, uint4*, float*);
struct Choice {
  ConvertKernel kernel;
  unsigned threads;
};

template <bool kBf16, InputOrder kOrder>
Choice choose(int64_t pieces) {
  if (pieces <= 256) return {convert_kernel<kBf16, kOrder, 256, 1>, 256};
  if (pieces <= 512) return {convert_kernel<kBf16, kOrder, 256, 2>, 256};
  if (pieces <= 1024) return {convert_kernel<kBf16, kOrder, 512, 2>, 512};
  if (pieces <= 2048) return {convert_kernel<kBf16, kOrder, 512, 4>, 512};
  if (pieces <= 2560) return {convert_kernel<kBf16, kOrder, 512, 5>, 512};
  return {convert_long_kernel<kBf16, kOrder>, 512};
}

}  // namespace

std::optional<TileType> fast_tile_type(DType type) {
  switch (type) {
    case DType::kP4:
      return TileType::kP4;
    case DType::kP8:
      return TileType::kP8;
    case DType::kF16:
      return TileType::kF16;
    case DType::kBF16:
      return TileType::kBf16;
    default:
      return std::nullopt;
  }
}

InputLaunch convert_input(const float* x, int64_t rows, int64_t k, bool bf16, InputOrder order,
                          int64_t padded_rows, void* out, float* scales, cudaStream_t stream) {
  const bool in_rows = order == InputOrder::kRows;
  const int64_t pieces = tiles_of(k) * 8;
  const Choice choice = bf16 ? (in_rows ? choose<true, InputOrder::kRows>(pieces)
                                        : choose<true, InputOrder::kTiles>(pieces))
                             : (in_rows ? choose<false, InputOrder::kRows>(pieces)
                                        : choose<false, InputOrder::kTiles>(pieces));
  InputLaunch launch{reinterpret_cast<const void*>(choice.kernel),
                     dim3(static_cast<unsigned>(rows)), dim3(choice.threads), cudaSuccess};
  choice.kernel<<<launch.grid, launch.block, 0, stream>>>(x, k, tiles_of(k), padded_rows,
                                                          static_cast<uint4*>(out), scales);
  launch.error = cudaGetLastError();
  return launch;
}

}  // namespace reckon::kernels::cuda
