// How exact attention cuts positions into segments: 0 ... 15 are 64 positions each, and each
// doubling of the context after position 1024 is 16 more, so that a segment is at most a sixteenth
// of what lies before its end, a multiple of 64, and a function of the position alone.
#pragma once

#include <cstdint>

namespace reckon::kernels::cuda {

inline constexpr int kTile = 64;  // positions that are reduced together
inline constexpr int kSegmentsOfDoubling = 16;
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
