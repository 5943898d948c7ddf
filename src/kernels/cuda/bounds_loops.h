// The kernels that bounds.cpp times. Plain types only; errors are cudaError_t as int.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace reckon::kernels::cuda {

// Fills `bytes` (a multiple of 16) with random bits.
int fill_random(void* memory, int64_t bytes, cudaStream_t stream);

// Reads `bytes` (a multiple of kReadBlock) once with 16-byte loads and writes nothing; `sink` is 4
// bytes that it could write.
inline constexpr int64_t kReadBlock = 64 << 10;
int launch_read(const void* memory, int64_t bytes, uint32_t* sink, cudaStream_t stream);

// Multiply-adds on random non-zero operands, as many rounds as asked, on every multiprocessor.
enum class Multiply {
  kFmaF32,     // FFMA
  kMmaF16,     // mma.m16n8k16, float32 sums
  kMmaI8,      // mma.m16n8k32, int32 sums
  kWgmmaF16,   // wgmma.m64n256k16, operands in shared memory, float32 sums; sm_90 only
  kWgmmaBf16,  // the same with bf16
};
struct MultiplyLaunch {
  int multiprocessors = 0;
  int64_t rounds = 0;
  float* sink = nullptr;  // one value that the kernel could write
};
int launch_multiply(Multiply what, const MultiplyLaunch& launch, cudaStream_t stream);
// Operations of one round on the whole device; a multiplication and its addition are two.
double operations_a_round(Multiply what, int multiprocessors);

}  // namespace reckon::kernels::cuda
