// The arithmetic of swiglu, shared by the kernel of that op and by matmuls that end in it, so that
// both give the same bits: gate / (1 + e^-gate) * up, each step rounded to nearest. And the sigmoid
// of gates.
#pragma once

namespace reckon::kernels::cuda {

__device__ __forceinline__ float silu(float x) {
  return __fdiv_rn(x, __fadd_rn(1.0F, expf(-x)));
}

__device__ __forceinline__ float sigmoid(float x) {
  return __fdiv_rn(1.0F, __fadd_rn(1.0F, expf(-x)));
}

__device__ __forceinline__ float swiglu_element(float gate, float up) {
  return __fmul_rn(silu(gate), up);
}

}  // namespace reckon::kernels::cuda
