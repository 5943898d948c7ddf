// Shaped for nothing but the rate: operands stay in registers (of wgmma, in shared memory, where
// its B must be), and every warp has several independent accumulators. Operands are random and not
// zero, because a chip on zeros uses less power and runs faster than it does on real data. All sums
// are tested against a value that they never have, so that no work can be left out.
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/cuda/bounds_loops.h"
#include "kernels/cuda/wgmma_registers.cuh"

namespace reckon::kernels::cuda {
namespace {

__device__ uint32_t random_word(uint32_t seed) {
  uint32_t h = seed * 0x9E3779B1u + 0x7F4A7C15u;
  h = (h ^ h >> 15) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

// Random bits as values of +-[0.5, 1), or as bytes that are not zero.
__device__ uint32_t as_halves(uint32_t bits) {
  return (bits & 0x83FF83FFu) | 0x38003800u;
}
__device__ uint32_t as_bytes(uint32_t bits) {
  return bits | 0x01010101u;
}
__device__ float as_float(uint32_t bits) {
  return __uint_as_float((bits & 0x807FFFFFu) | 0x3F000000u);
}

__device__ uint32_t thread_seed() {
  return (blockIdx.x * blockDim.x + threadIdx.x) * 64;
}

// ---- memory ----

__global__ void fill(uint4* memory, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint32_t seed = static_cast<uint32_t>(i) * 4;
    memory[i] = {random_word(seed), random_word(seed + 1), random_word(seed + 2),
                 random_word(seed + 3)};
  }
}

constexpr int kReadThreads = 512;
constexpr int kLoads = 8;  // in flight in each thread
static_assert(kReadThreads * kLoads * sizeof(uint4) == kReadBlock);

__device__ uint4 load_once(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

__global__ void __launch_bounds__(kReadThreads)
    read_all(const uint4* memory, int64_t blocks, uint32_t* sink) {
  uint32_t sum = 0;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const uint4* at = memory + block * (kReadThreads * kLoads) + threadIdx.x;
    uint4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) values[i] = load_once(at + i * kReadThreads);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      sum += (values[i].x ^ values[i].y) + (values[i].z ^ values[i].w);
    }
  }
  if (sum == 0x12345678u && *sink == 0x9ABCDEF0u) *sink = sum;
}

// ---- registers ----

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 4;  // of the register loops
constexpr int kFmas = 16;                    // accumulators of a thread
constexpr int kFmaRepeats = 16;              // of those in a round: a loop costs instructions, too
constexpr int kMmas = 8;                     // accumulators of a warp

// A sum that turns its sign in each step keeps its bits changing. The two other operands are the
// same for all sums, so that they can be taken from the operand cache rather than from registers:
// loops whose operands differed stayed under three quarters of the data sheet's rate.
__global__ void __launch_bounds__(kThreads) fma_f32(int64_t rounds, float* sink) {
  const uint32_t seed = thread_seed();
  const float factor = fabsf(as_float(random_word(seed))) * 1e-6F - 1.0F;
  const float addend = as_float(random_word(seed + 1));
  float sums[kFmas];
  for (int i = 0; i < kFmas; ++i) sums[i] = as_float(random_word(seed + 2 + i));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kFmas * kFmaRepeats; ++i) {
      asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(sums[i % kFmas]) : "f"(factor), "f"(addend));
    }
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  if (sum == 1.0e-30F) *sink = sum;
}

__device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Of halves (Sum is float) or bytes (Sum is uint32_t).
template <typename Sum>
__global__ void __launch_bounds__(kThreads) mma_loop(int64_t rounds, float* sink) {
  constexpr bool kHalves = std::is_same_v<Sum, float>;
  const uint32_t seed = thread_seed();
  const auto operand = [&](int i) {
    const uint32_t bits = random_word(seed + i);
    return kHalves ? as_halves(bits) : as_bytes(bits);
  };
  uint32_t a[2][4], b[4][2];
  for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = operand(i);
  for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = operand(8 + i);
  Sum d[kMmas][4] = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmas; ++i) mma(d[i], a[i / 4], b[i % 4]);
  }
  Sum sum = 0;
  for (int i = 0; i < kMmas * 4; ++i) sum += d[i / 4][i % 4];
  const Sum never = kHalves ? static_cast<Sum>(1.0e-30F) : static_cast<Sum>(0x12345678);
  if (sum == never && *sink == 1.0e-30F) *sink = static_cast<float>(sum);
}

// ---- wgmma ----

constexpr int kWarpgroups = 2;  // of the one block of a multiprocessor
constexpr int kWgmmaThreads = kWarpgroups * 128;
constexpr int kSteps = 4;    // of 16 along K, in one 128-byte swizzled row
constexpr int kRepeats = 4;  // of those, between two waits

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Rows of 128 bytes: 64 of A for each warpgroup, 256 of B for both.
constexpr int kABytes = 64 * 128;
constexpr int kBBytes = 256 * 128;

__device__ uint32_t as_bf16s(uint32_t bits) {
  return (bits & 0x807F807Fu) | 0x3F003F00u;
}

// A matrix descriptor of the 128-byte swizzle (PTX ISA, "matrix descriptor format"): the address
// and the stride of 8 rows in units of 16 bytes.
__device__ uint64_t descriptor(const void* shared) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  constexpr uint64_t kStride = 8 * 128 / 16;
  return uint64_t{(address & 0x3FFFFu) >> 4} | uint64_t{1} << 16 | kStride << 32 |
         uint64_t{1} << 62;
}

// d += A B of 64 x 256 x 16.
#define RECKON_WGMMA(type)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" RECKON_NAMES_128 \
               "}, %128, %129, 1, 1, 1, 0, 0;\n"                                                  \
               : RECKON_FLOATS_128(d)                                                             \
               : "l"(a), "l"(b))

template <bool kBf16>
__device__ void wgmma(float (&d)[128], uint64_t a, uint64_t b) {
  if constexpr (kBf16) {
    RECKON_WGMMA("bf16");
  } else {
    RECKON_WGMMA("f16");
  }
}

#endif

template <bool kBf16>
__global__ void __launch_bounds__(kWgmmaThreads, 1) wgmma_loop(int64_t rounds, float* sink) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(1024) uint32_t operands[(kWarpgroups * kABytes + kBBytes) / 4];
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sizeof operands / 4);
       i += kWgmmaThreads) {
    const uint32_t bits = random_word(blockIdx.x * 65536 + i);
    operands[i] = kBf16 ? as_bf16s(bits) : as_halves(bits);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint64_t a = descriptor(operands + threadIdx.x / 128 * (kABytes / 4));
  const uint64_t b = descriptor(operands + kWarpgroups * kABytes / 4);
  float d[128] = {};
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kSteps * kRepeats; ++i) {
      wgmma<kBf16>(d, a + i % kSteps * 2, b + i % kSteps * 2);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0;
  for (const float part : d) sum += part;
  if (sum == 1.0e-30F) *sink = sum;
#endif
}

int launched() {
  return cudaGetLastError();
}

}  // namespace

int fill_random(void* memory, int64_t bytes, cudaStream_t stream) {
  fill<<<4096, kThreads, 0, stream>>>(static_cast<uint4*>(memory), bytes / 16);
  return launched();
}

int launch_read(const void* memory, int64_t bytes, uint32_t* sink, cudaStream_t stream) {
  const int64_t blocks = bytes / kReadBlock;
  const auto grid = static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
  read_all<<<grid, kReadThreads, 0, stream>>>(static_cast<const uint4*>(memory), blocks, sink);
  return launched();
}

int launch_multiply(Multiply what, const MultiplyLaunch& launch, cudaStream_t stream) {
  const auto ones = static_cast<unsigned>(launch.multiprocessors);
  const unsigned blocks = ones * kBlocksPerMultiprocessor;
  switch (what) {
    case Multiply::kFmaF32:
      fma_f32<<<blocks, kThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
    case Multiply::kMmaF16:
      mma_loop<float><<<blocks, kThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
    case Multiply::kMmaI8:
      mma_loop<uint32_t><<<blocks, kThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
    case Multiply::kWgmmaF16:
      wgmma_loop<false><<<ones, kWgmmaThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
    case Multiply::kWgmmaBf16:
      wgmma_loop<true><<<ones, kWgmmaThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
  }
  return launched();
}

double operations_a_round(Multiply what, int multiprocessors) {
  constexpr double kWarps = kBlocksPerMultiprocessor * kThreads / 32.0;
  double of_one = 0;
  switch (what) {
    case Multiply::kFmaF32:
      of_one = 2.0 * kFmas * kFmaRepeats * kBlocksPerMultiprocessor * kThreads;
      break;
    case Multiply::kMmaF16:
      of_one = 2.0 * 16 * 8 * 16 * kMmas * kWarps;
      break;
    case Multiply::kMmaI8:
      of_one = 2.0 * 16 * 8 * 32 * kMmas * kWarps;
      break;
    case Multiply::kWgmmaF16:
    case Multiply::kWgmmaBf16:
      of_one = 2.0 * 64 * 256 * 16 * kSteps * kRepeats * kWarpgroups;
      break;
  }
  return of_one * multiprocessors;
}

}  // namespace reckon::kernels::cuda
