// What attention kernels of every instruction set share: storing the rows' keys and values.
//
// Included by files compiled for one instruction set: plain types only, in a namespace without a
// name, so that none of them can be shared with code for another.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {
namespace {

inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Of float32 caches.
inline void store_rows(const AttentionArgs& args) {
  const auto bytes = static_cast<uint64_t>(args.head_dim) * sizeof(float);
  for (int64_t h = 0; h < args.kv_heads; ++h) {
    for (int64_t r = 0; r < args.rows; ++r) {
      const int64_t from = (r * args.kv_heads + h) * args.head_dim;
      const int64_t to = (h * args.capacity + args.first_position + r) * args.head_dim;
      __builtin_memcpy(static_cast<float*>(args.cache_k) + to, args.k + from, bytes);
      __builtin_memcpy(static_cast<float*>(args.cache_v) + to, args.v + from, bytes);
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
