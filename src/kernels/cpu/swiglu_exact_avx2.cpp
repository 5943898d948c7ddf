// SwiGLU with AVX2: libm's e^x, one element at a time, took 2.5 % of a decode step and 8 % of a
// prefill of SmolLM2-135M on 2 cores of a Xeon with AVX2 matmuls.
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gated_avx2.h"
#include "kernels/cpu/sigmoid_avx2.h"
#include "kernels/cpu/swiglu_exact_avx2.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";

}  // namespace

void swiglu_exact_avx2(const SwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SwigluArgs copy = args;
  parallel_for(context, args.rows, gated_row<SwigluArgs, swiglu8>, &copy);
}

const char* swiglu_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
