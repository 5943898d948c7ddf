// Shaped for nothing but the rate: operands stay in registers (of wgmma, in shared memory, where
// its B must be), and every warp has several independent accumulators. Operands are random and not
// zero, because a chip on zeros uses less power and runs faster than it does on real data. All sums
// are tested against a value that they never have, so that no work can be left out.
#include <cuda_fp16.h>

#include "kernels/cuda/bounds_loops.h"

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

__global__ void __launch_bounds__(kThreads) mma_f16(int64_t rounds, float* sink) {
  const uint32_t seed = thread_seed();
  uint32_t a[2][4], b[4][2];
  for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = as_halves(random_word(seed + i));
  for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = as_halves(random_word(seed + 8 + i));
  float d[kMmas][4] = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmas; ++i) {
      const uint32_t* x = a[i / 4];
      const uint32_t* y = b[i % 4];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
  }
  float sum = 0;
  for (int i = 0; i < kMmas * 4; ++i) sum += d[i / 4][i % 4];
  if (sum == 1.0e-30F) *sink = sum;
}

__global__ void __launch_bounds__(kThreads) mma_i8(int64_t rounds, float* sink) {
  const uint32_t seed = thread_seed();
  uint32_t a[2][4], b[4][2];
  for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = as_bytes(random_word(seed + i));
  for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = as_bytes(random_word(seed + 8 + i));
  int32_t d[kMmas][4] = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmas; ++i) {
      const uint32_t* x = a[i / 4];
      const uint32_t* y = b[i % 4];
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
  }
  int32_t sum = 0;
  for (int i = 0; i < kMmas * 4; ++i) sum ^= d[i / 4][i % 4];
  if (sum == 0x12345678 && *sink == 1.0e-30F) *sink = static_cast<float>(sum);
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
#define RECKON_WGMMA(type)                                                                         \
  asm volatile(                                                                                    \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                                 \
      " {"                                                                                         \
      "%0, %1, %2, %3, %4, %5, %6, %7,"                                                            \
      "%8, %9, %10, %11, %12, %13, %14, %15,"                                                      \
      "%16, %17, %18, %19, %20, %21, %22, %23,"                                                    \
      "%24, %25, %26, %27, %28, %29, %30, %31,"                                                    \
      "%32, %33, %34, %35, %36, %37, %38, %39,"                                                    \
      "%40, %41, %42, %43, %44, %45, %46, %47,"                                                    \
      "%48, %49, %50, %51, %52, %53, %54, %55,"                                                    \
      "%56, %57, %58, %59, %60, %61, %62, %63,"                                                    \
      "%64, %65, %66, %67, %68, %69, %70, %71,"                                                    \
      "%72, %73, %74, %75, %76, %77, %78, %79,"                                                    \
      "%80, %81, %82, %83, %84, %85, %86, %87,"                                                    \
      "%88, %89, %90, %91, %92, %93, %94, %95,"                                                    \
      "%96, %97, %98, %99, %100, %101, %102, %103,"                                                \
      "%104, %105, %106, %107, %108, %109, %110, %111,"                                            \
      "%112, %113, %114, %115, %116, %117, %118, %119,"                                            \
      "%120, %121, %122, %123, %124, %125, %126, %127"                                             \
      "}, %128, %129, 1, 1, 1, 0, 0;\n"                                                            \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),        \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),    \
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), \
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), \
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), \
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), \
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), \
        "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
        "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), \
        "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), \
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), \
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), \
        "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),          \
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),        \
        "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),        \
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),        \
        "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])         \
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
      mma_f16<<<blocks, kThreads, 0, stream>>>(launch.rounds, launch.sink);
      break;
    case Multiply::kMmaI8:
      mma_i8<<<blocks, kThreads, 0, stream>>>(launch.rounds, launch.sink);
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
