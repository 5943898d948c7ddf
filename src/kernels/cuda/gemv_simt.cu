// The exact matmul with float32 activations: plain fused multiply-adds on the same tiles, segments
// and tree as gemv_mma.cuh. A block is one strip and its 8 warps the 8 segments; a lane multiplies
// the 32 weights of a tile that it owns. Kept simple: it serves f32 weights (norm-like projections,
// routers) and checks the matrix kernels; 4 rows a pass.
#include "kernels/cuda/gemv_simt.cuh"

#include "kernels/cuda/gemv_mma.cuh"

namespace reckon::kernels::cuda {
namespace {

__device__ __forceinline__ uint4 stream_16(const uint8_t* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// weights[row half][column]: the lane's weights of rows g and g + 8, columns 16t ... 16t + 15.
template <TileType kType>
__device__ __forceinline__ void load_weights(const uint8_t* tile, int lane, float (&w)[2][16]) {
  if constexpr (kType == TileType::kP4) {
    const uint4 codes = stream_16(tile + lane * 16);
    const uint2 scales = *reinterpret_cast<const uint2*>(tile + 512 + lane / 4 * 8);
    const float2 row[2] = {__half22float2(*reinterpret_cast<const __half2*>(&scales.x)),
                           __half22float2(*reinterpret_cast<const __half2*>(&scales.y))};
#pragma unroll
    for (int slot = 0; slot < kTileSlots; ++slot) {
      const int r = slot / 2 % 4, h = slot % 2;
      const uint32_t code = word_of(codes, slot / 8) >> (4 * (2 * (r & 1) + (r >> 1) + 4 * h)) & 15;
      w[r & 1][slot / 8 * 4 + (r >> 1) * 2 + h] =
          __fmaf_rn(row[r & 1].x, static_cast<float>(code), row[r & 1].y);
    }
  } else if constexpr (kType == TileType::kP8) {
    const uint4 codes[2] = {stream_16(tile + lane * 16), stream_16(tile + 512 + lane * 16)};
    const uint32_t bits = *reinterpret_cast<const uint32_t*>(tile + 1024 + lane / 4 * 4);
    const float2 scale = __half22float2(*reinterpret_cast<const __half2*>(&bits));
#pragma unroll
    for (int slot = 0; slot < kTileSlots; ++slot) {
      const int m = slot / 8, r = slot / 2 % 4, h = slot % 2;
      const uint32_t word = word_of(codes[m / 2], m % 2 * 2 + (r >> 1));
      const int code = static_cast<int>(word >> (8 * ((r & 1) + 2 * h)) & 255) - 128;
      w[r & 1][m * 4 + (r >> 1) * 2 + h] =
          __fmul_rn(r & 1 ? scale.y : scale.x, static_cast<float>(code));
    }
  } else if constexpr (kType == TileType::kF32) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint4 v = stream_16(tile + i * 512 + lane * 16);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[j / 2][i / 2 * 4 + i % 2 * 2 + j % 2] = __uint_as_float(word_of(v, j));
      }
    }
  } else {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const uint4 v = stream_16(tile + m * 512 + lane * 16);
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const uint32_t bits = word_of(v, r);
        float2 pair;
        if constexpr (kType == TileType::kF16) {
          pair = __half22float2(*reinterpret_cast<const __half2*>(&bits));
        } else {
          pair = make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
        }
        w[r & 1][m * 4 + (r >> 1) * 2] = pair.x;
        w[r & 1][m * 4 + (r >> 1) * 2 + 1] = pair.y;
      }
    }
  }
}

// Grid: (units, slabs of kRows rows). A unit is a strip; of both weights for SwiGLU.
template <TileType kType, int kRows>
__global__ void __launch_bounds__(kSimtThreads)
    gemv_simt_kernel(const __grid_constant__ GemvKernelArgs args) {
  __shared__ float partials[2][kGemvSegments][kRows][kTileRows];
  constexpr int kTile = kTileBytesOf<kType>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int unit = static_cast<int>(blockIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kRows;
  const int rows = min(args.rows - first_row, kRows);
  const int begin = segment_begin(warp, args.k_tiles), end = segment_begin(warp + 1, args.k_tiles);
  const float* x = args.x + first_row * args.x_stride;
  let_dependents_start();
  wait_for_inputs();
  for (int part = 0; part < args.parts; ++part) {
    const GemvStrip strip = find_strip(args, unit, part);
    const uint8_t* tile =
        args.tiles[strip.weight] + (int64_t{strip.index} * args.k_tiles + begin) * kTile;
    float sum[2][kRows] = {};
    for (int index = begin; index < end; ++index, tile += kTile) {
      float w[2][16];
      load_weights<kType>(tile, lane, w);
      const int column = index * 64 + lane % 4 * 16;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r >= rows) break;
#pragma unroll
        for (int c = 0; c < 16; c += 4) {
          const float4 v = load_x(args, x + r * args.x_stride, column + c);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float s = sum[half][r];
            s = __fmaf_rn(v.x, w[half][c], s);
            s = __fmaf_rn(v.y, w[half][c + 1], s);
            s = __fmaf_rn(v.z, w[half][c + 2], s);
            sum[half][r] = __fmaf_rn(v.w, w[half][c + 3], s);
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float s = sum[half][r];
        s = __fadd_rn(s, __shfl_xor_sync(0xffffffffu, s, 1));
        s = __fadd_rn(s, __shfl_xor_sync(0xffffffffu, s, 2));
        if (lane % 4 == 0) partials[part][warp][r][lane / 4 + 8 * half] = s;
      }
    }
  }
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / static_cast<int>(kTileRows);
  const int in_strip = static_cast<int>(threadIdx.x) % static_cast<int>(kTileRows);
  if (row >= rows) return;
  float result[2] = {0, 0};
  for (int part = 0; part < args.parts; ++part) {
    float v[kGemvSegments];
#pragma unroll
    for (int s = 0; s < kGemvSegments; ++s) v[s] = partials[part][s][row][in_strip];
    result[part] = __fadd_rn(__fadd_rn(__fadd_rn(v[0], v[1]), __fadd_rn(v[2], v[3])),
                             __fadd_rn(__fadd_rn(v[4], v[5]), __fadd_rn(v[6], v[7])));
  }
  const GemvStrip strip = find_strip(args, unit, 0);
  const int column = strip.index * static_cast<int>(kTileRows) + in_strip;
  if (column >= args.n[strip.weight]) return;
  args.out[strip.weight][(first_row + row) * args.out_stride[strip.weight] + column] =
      args.parts > 1 ? swiglu(result[0], result[1]) : result[0];
}

template <int kRows>
const void* kernel_of(TileType type) {
  switch (type) {
    case TileType::kP4:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kP4, kRows>);
    case TileType::kP8:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kP8, kRows>);
    case TileType::kF16:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kF16, kRows>);
    case TileType::kBf16:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kBf16, kRows>);
    case TileType::kF32:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kF32, kRows>);
  }
  return nullptr;
}

}  // namespace

const void* gemv_simt_kernel_of(TileType type, int slab_rows) {
  return slab_rows == 1 ? kernel_of<1>(type) : kernel_of<kSimtRows>(type);
}

}  // namespace reckon::kernels::cuda
