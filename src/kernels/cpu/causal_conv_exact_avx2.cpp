// The causal convolution with AVX2. A task takes a few channels through all rows: their weights,
// turned so that channels lie side by side, and the inputs of the last rows stay in the first-level
// cache, and no other task touches their slots of the ring. It stores inputs after its last row,
// since they may take the slots of earlier ones.
#include <immintrin.h>

#include "kernels/cpu/causal_conv.h"
#include "kernels/cpu/causal_conv_exact_avx2.hash.h"
#include "kernels/cpu/sigmoid_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
constexpr int64_t kTaskChannels = 64;

// What was before position 0.
alignas(32) constexpr float kZeros[kTaskChannels] = {};

// The inputs of a position from channel `first` on.
const float* inputs_at(const CausalConvArgs& args, int64_t position, int64_t first) {
  if (position < 0) return kZeros;
  const int64_t row = position - args.first_position;
  if (row >= 0) return args.x + row * args.channels + first;
  return args.inputs + position % args.ring * args.channels + first;
}

// 8 values, or fewer at the end of a row.
__m256 load(const float* p, int64_t left) {
  if (left >= 8) return _mm256_loadu_ps(p);
  return _mm256_maskload_ps(p, first_lanes(static_cast<int>(left)));
}

void store(float* p, int64_t left, __m256 values) {
  if (left >= 8) return _mm256_storeu_ps(p, values);
  _mm256_maskstore_ps(p, first_lanes(static_cast<int>(left)), values);
}

// `count` channels of one row; weights [width, kTaskChannels].
void convolve_row(const float* weights, const float* const* taps, int64_t width, int64_t count,
                  float* out) {
  for (int64_t c = 0; c < count; c += 8) {
    const int64_t left = count - c;
    __m256 sum = _mm256_mul_ps(_mm256_load_ps(weights + c), load(taps[0] + c, left));
    for (int64_t j = 1; j < width; ++j) {
      sum = _mm256_fmadd_ps(_mm256_load_ps(weights + j * kTaskChannels + c),
                            load(taps[j] + c, left), sum);
    }
    store(out + c, left, silu8(sum));
  }
}

void store_inputs(const CausalConvArgs& args, int64_t first, int64_t count) {
  const int64_t stored = args.rows < args.ring ? args.rows : args.ring;
  for (int64_t r = args.rows - stored; r < args.rows; ++r) {
    const int64_t slot = (args.first_position + r) % args.ring;
    float* to = args.inputs + slot * args.channels + first;
    const float* from = args.x + r * args.channels + first;
    for (int64_t c = 0; c < count; ++c) to[c] = from[c];
  }
}

// Task: a few channels.
void convolve(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const CausalConvArgs*>(argument);
  const int64_t first = task * kTaskChannels;
  const int64_t left = args.channels - first;
  const int64_t count = left < kTaskChannels ? left : kTaskChannels;
  alignas(32) float weights[kMostTaps * kTaskChannels] = {};
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t j = 0; j < args.width; ++j) {
      weights[j * kTaskChannels + c] = args.weight[(first + c) * args.width + j];
    }
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t oldest = args.first_position + r - (args.width - 1);
    const float* taps[kMostTaps];
    for (int64_t j = 0; j < args.width; ++j) taps[j] = inputs_at(args, oldest + j, first);
    convolve_row(weights, taps, args.width, count, args.out + r * args.channels + first);
  }
  store_inputs(args, first, count);
}

}  // namespace

void causal_conv_exact_avx2(const CausalConvArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  CausalConvArgs copy = args;
  parallel_for(context, (args.channels + kTaskChannels - 1) / kTaskChannels, convolve, &copy);
}

const char* causal_conv_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
