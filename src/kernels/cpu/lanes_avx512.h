// Masks of 16 lanes, for files compiled for AVX-512 or AMX. The namespace has no name so that
// nothing in it can be shared with code for another instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace reckon::kernels::cpu {
namespace {

// Lanes 0 ... count - 1 of 16.
inline __mmask16 first_lanes(int64_t count) {
  if (count <= 0) return 0;
  return static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1);
}

}  // namespace
}  // namespace reckon::kernels::cpu
