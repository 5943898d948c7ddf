// How exact attention cuts positions into segments: 0 ... 31 are 64 positions each, and each
// doubling of the context after position 2048 is 32 more, so that a segment is at most a 32nd of
// what lies before its end (or 64 positions), a multiple of 64, and a function of the position
// alone. A block walks through a segment at the pace of its latency; with 16 to a doubling the
// longest segments were twice an even share for 66 blocks a KV head: 102 us a layer at 64k
// positions instead of 89 (H200, 32/8 heads of 128).
#pragma once

#include <cstdint>

namespace reckon::kernels::cuda {

inline constexpr int kTile = 64;  // positions that are reduced together
inline constexpr int kSegmentsOfDoubling = 32;
inline constexpr int kFirstSpan = kTile * kSegmentsOfDoubling;

__host__ __device__ __forceinline__ int segment_begin(int segment) {
  if (segment < kSegmentsOfDoubling) return segment * kTile;
  const int doubling = segment / kSegmentsOfDoubling - 1;
  return (kFirstSpan << doubling) + (segment % kSegmentsOfDoubling) * (kTile << doubling);
}

__host__ __device__ __forceinline__ int segment_of(int position) {
  if (position < kFirstSpan) return position / kTile;
  int doubling = 0;
  while ((kFirstSpan << (doubling + 1)) <= position) ++doubling;
  return kSegmentsOfDoubling * (doubling + 1) +
         (position - (kFirstSpan << doubling)) / (kTile << doubling);
}

}  // namespace reckon::kernels::cuda
