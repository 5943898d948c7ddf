// The canonical reduction order of exact matmuls on the CPU: a contract for each weight format.
//
// Every exact variant, whatever its instruction set, tiling or split of K, performs these float32
// operations, each rounded to nearest, and so gives the same bits. Adding activation rows adds
// accumulators and nothing else. "fma" is one rounding.
//
// K is cut into segments of kSegment elements, the last one possibly short. A segment is summed on
// its own, then segments are added in ascending order:
//
//   total = +0;  for each segment: total = total + sum(segment)
//
// so that several workers may each take whole segments and leave the additions to one.
//
// Integer formats. Activations become int16 codes per row and group of 32 elements (see below). A
// weight block is one group (q8_0, q4_0, q4_1) or two (p8, p4), which then share its scale and
// minimum; a padded last block counts whole, with activations of 0 beyond K. Of q4_k, a group is a
// part of the block, its weight_scale is scale * s and its weight_minimum -minimum * m (both exact
// in float32). Of q6_k, a group is two parts, and its integer weights are s * (code - 32), at most
// 4096; weight_scale is the block's. A group's dot product of codes is an exact int32 (at most
// 32 * 128 * 32767 or 32 * 4096 * 16383, below 2^31), so lanes and instructions inside a group are
// free to choose; only what follows rounds. There is one accumulator an output:
//
//   acc = +0;  for each group of the segment, ascending:
//     acc = fma(float(dot), weight_scale * activation_scale, acc)
//     acc = fma(weight_minimum, activation_sum, acc)                 (q4_1, q4_k and p4 only)
//
// Activation codes of a group: largest = 32767, for q6_k 16383; amax = max |x|; scale = amax /
// largest; code = x * (largest / amax) rounded to nearest even; activation_sum = scale * float(sum
// of codes). A group whose amax is
// below 2^-100 has scale 0 and codes 0. A group with an infinity or a NaN has scale NaN and codes
// 0: its row, and only its row, becomes NaN. Why int16: int8 codes cost 2.8e-3 nats a token of mean
// KL on a 135M model over 2,000 tokens of text, int16 codes 5e-8; the bar is 1e-3.
//
// Float formats (f32, f16, bf16). Weights are converted to float32, which is exact. There are 16
// lanes an output; element k goes to lane k mod 16, and a tail is filled up with zeros on both
// sides:
//
//   lane[l] = +0;  for each 16 elements of the segment, ascending: lane[l] = fma(w, x, lane[l])
//
// Segments are added lane by lane. At the end the lanes are folded in halves: l and l + 8, then
// l and l + 4, l + 2, l + 1. Infinities and NaNs follow IEEE arithmetic.
//
// Plain types only.
#pragma once

#include <cstdint>

namespace reckon::kernels::cpu {

constexpr int64_t kSegment = 512;
constexpr int64_t kGroup = 32;
constexpr int64_t kSegmentGroups = kSegment / kGroup;
constexpr int64_t kFloatLanes = 16;

constexpr float kLargestCode = 32767.0F;
constexpr float kLargestCodeQ6 = 16383.0F;
// Bits of |x|, compared as integers, so that a maximum sees NaN as the largest.
constexpr int32_t kMagnitudeMask = 0x7fffffff;
constexpr int32_t kSmallestMagnitude = (127 - 100) << 23;  // 2^-100
constexpr int32_t kInfinityBits = 0x7f800000;

}  // namespace reckon::kernels::cpu
