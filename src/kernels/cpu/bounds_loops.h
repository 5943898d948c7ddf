// The loops that bounds.cpp times, one file an instruction set. Plain types only.
//
// Each result depends on everything that a loop did, so that no compiler can leave any of it out.
#pragma once

#include <cstdint>

namespace reckon::kernels::cpu {

// A sum over all bytes from `memory`, which is 64-byte aligned; `bytes` is a multiple of
// kReadBlock.
inline constexpr int64_t kReadBlock = 512;
uint64_t read_scalar(const void* memory, int64_t bytes);
uint64_t read_avx2(const void* memory, int64_t bytes);

// `iterations` rounds of multiply-adds in registers alone, on 64 bytes of operands from each of two
// places: finite floats for fma_*, any bytes for the others. Every round does the loop's number of
// operations (a multiplication and the addition of its product count as two), on more independent
// accumulators than the instruction has cycles of latency times units.
using MultiplyLoop = double (*)(const void* x, const void* y, int64_t iterations);

inline constexpr int kAvx2Accumulators = 10;
inline constexpr int kAvx512Accumulators = 16;

// A chain of kClockChain additions and exclusive ors a round, each of which takes the one before
// and one cycle. Of the operands the first words count.
inline constexpr int kClockChain = 16;
double clock_chain(const void* x, const void* y, int64_t iterations);

double fma_f32_scalar(const void* x, const void* y, int64_t iterations);  // 2 * 8
double fma_f32_avx2(const void* x, const void* y, int64_t iterations);    // 2 * 8 lanes * accs
double madd_i16_avx2(const void* x, const void* y, int64_t iterations);   // vpmaddwd, vpaddd
// vpmaddubsw, then vpmaddwd with ones, then vpaddd: what int8 products cost without VNNI.
double madd_i8_avx2(const void* x, const void* y, int64_t iterations);
double fma_f32_avx512(const void* x, const void* y, int64_t iterations);
double dot_i16_avx512vnni(const void* x, const void* y, int64_t iterations);  // vpdpwssd
double dot_i8_avx512vnni(const void* x, const void* y, int64_t iterations);   // vpdpbusd
double dot_bf16_avx512(const void* x, const void* y, int64_t iterations);     // vdpbf16ps
// tdpbf16ps on 4 tiles of 16 x 16 sums, 32 products each: the thread's tiles are free afterwards.
double dot_bf16_amx(const void* x, const void* y, int64_t iterations);

}  // namespace reckon::kernels::cpu
