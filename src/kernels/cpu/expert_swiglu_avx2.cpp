// SwiGLU on the results of experts, for all kernels of experts with vectors: the numbers of
// swiglu_exact_avx2.cpp.
#include <immintrin.h>

#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/gated_avx2.h"
#include "kernels/cpu/sigmoid_avx2.h"

namespace reckon::kernels::cpu {

void swiglu_columns_avx2(const float* gate, const float* up, float* out, int64_t n) {
  gated_columns<swiglu8>(gate, up, out, n);
}

}  // namespace reckon::kernels::cpu
