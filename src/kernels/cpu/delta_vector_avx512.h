// Registers of AVX-512 for delta_rule_steps.h.
//
// The namespace has no name so that nothing in it can be shared with code for another instruction
// set.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace reckon::kernels::cpu {
namespace {

struct Vector512 {
  using Register = __m512;
  static constexpr int64_t kLanes = 16;
  static Register zero() { return _mm512_setzero_ps(); }
  static Register all(float x) { return _mm512_set1_ps(x); }
  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm512_mul_ps(a, b); }
  static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
};

}  // namespace
}  // namespace reckon::kernels::cpu
