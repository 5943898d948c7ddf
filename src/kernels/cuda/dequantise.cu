#include "kernels/cuda/dequantise.h"

#include "kernels/cuda/matmul_fast_unpack.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr int kWarps = 8;

// Gives up `mine` for the neighbour's (lane ^ 1).
__device__ uint4 exchanged(uint4 mine) {
  return make_uint4(
      __shfl_xor_sync(0xffffffffu, mine.x, 1), __shfl_xor_sync(0xffffffffu, mine.y, 1),
      __shfl_xor_sync(0xffffffffu, mine.z, 1), __shfl_xor_sync(0xffffffffu, mine.w, 1));
}

// A warp a tile, bound by memory: it reads 576 bytes of p4 and writes 2048. A lane owns 32
// contiguous bytes of two rows; neighbours exchange halves of them, so that each of the four stores
// of a lane fills 32-byte sectors together with its neighbour's.
template <TileType kType>
__global__ void __launch_bounds__(kWarps * 32)
    dequantise_kernel(const uint8_t* __restrict__ tiles, int64_t tiles_a_strip, int64_t count,
                      uint4* __restrict__ out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (tile >= count) return;
  TileWords<kType> words;
  words.load(tiles + tile * TileWords<kType>::kBytes, lane);
  uint32_t a[4][4];  // [w][r]: of each row, words 2w and 2w + 1 of the lane's 8
  words.template fragment<0>(a[0]);
  words.template fragment<1>(a[1]);
  words.template fragment<2>(a[2]);
  words.template fragment<3>(a[3]);
  const int64_t strip = tile / tiles_a_strip, column = tile % tiles_a_strip;
  const int g = lane / 4, t = lane % 4;
  const bool odd = t % 2 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 first = make_uint4(a[0][half], a[0][half + 2], a[1][half], a[1][half + 2]);
    const uint4 second = make_uint4(a[2][half], a[2][half + 2], a[3][half], a[3][half + 2]);
    const uint4 got = exchanged(odd ? first : second);
    uint4* row = out + ((strip * 16 + g + half * 8) * tiles_a_strip + column) * 8 + t / 2 * 4;
    // The pair's 64 bytes are pieces 0 ... 3: the even lane's first and second, the odd lane's.
    row[odd ? 1 : 0] = odd ? got : first;
    row[odd ? 3 : 2] = odd ? second : got;
  }
}

}  // namespace

DequantiseLaunch dequantise_strips(TileType type, const void* tiles, int64_t k, int64_t first_strip,
                                   int64_t strips, void* out, cudaStream_t stream) {
  const int64_t a_strip = tiles_of(k), count = strips * a_strip;
  auto* kernel = type == TileType::kP4    ? dequantise_kernel<TileType::kP4>
                 : type == TileType::kP8  ? dequantise_kernel<TileType::kP8>
                 : type == TileType::kF16 ? dequantise_kernel<TileType::kF16>
                                          : dequantise_kernel<TileType::kBf16>;
  DequantiseLaunch launch{reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>((count + kWarps - 1) / kWarps)),
                          dim3(kWarps * 32), cudaSuccess};
  const auto* first = static_cast<const uint8_t*>(tiles) + first_strip * a_strip * tile_bytes(type);
  kernel<<<launch.grid, launch.block, 0, stream>>>(first, a_strip, count, static_cast<uint4*>(out));
  launch.error = cudaGetLastError();
  return launch;
}

}  // namespace reckon::kernels::cuda
