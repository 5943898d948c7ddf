// The reference walks pair by pair through all rows and heads, on one thread: 4 % of a prefill of
// SmolLM2-135M by the AVX2 matmuls on 2 cores. Here a row's cosines and sines are computed once for
// all its heads, which are then rotated in the order of memory, in loops that compilers vectorise.
#include <cmath>

#include "kernels/cpu/rope_exact.h"
#include "kernels/cpu/rope_exact_scalar.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_scalar";

struct Job {
  const RopeArgs* args;
  const double* frequencies;  // [dims / 2]
  float* angles;              // [threads, 2, head_dim]
};

void rotate_halves(float* first, float* second, const float* cosines, const float* sines,
                   int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = first[i];
    const float b = second[i];
    first[i] = a * cosines[i] - b * sines[i];
    second[i] = b * cosines[i] + a * sines[i];
  }
}

void rotate_neighbours(float* x, const float* cosines, const float* sines, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cosines[i] - b * sines[i];
    x[2 * i + 1] = b * cosines[i] + a * sines[i];
  }
}

void rotate_row(void* argument, int64_t row, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const RopeArgs& args = *job.args;
  const int64_t pairs = args.dims / 2;
  float* cosines = job.angles + thread * 2 * args.head_dim;
  float* sines = cosines + args.head_dim;
  for (int64_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(args.first_position + row) * job.frequencies[i];
    cosines[i] = static_cast<float>(std::cos(angle));
    sines[i] = static_cast<float>(std::sin(angle));
  }
  for (int64_t h = 0; h < args.heads; ++h) {
    float* x = args.x + (row * args.heads + h) * args.head_dim;
    if (args.pairing == RopePairing::kHalf) {
      rotate_halves(x, x + pairs, cosines, sines, pairs);
    } else {
      rotate_neighbours(x, cosines, sines, pairs);
    }
  }
}

}  // namespace

uint64_t rope_scratch_bytes(int64_t head_dim, int threads) {
  const auto dim = static_cast<uint64_t>(head_dim);
  return dim * sizeof(double) + 2 * dim * sizeof(float) * static_cast<uint64_t>(threads);
}

void rope_exact_scalar(const RopeArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const uint64_t bytes = rope_scratch_bytes(args.head_dim, thread_count(context));
  auto* frequencies = static_cast<double*>(scratch(context, bytes));
  for (int64_t i = 0; i < args.dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(args.dims);
    frequencies[i] = std::pow(args.base, exponent);
  }
  Job job{&args, frequencies, reinterpret_cast<float*>(frequencies + args.head_dim)};
  parallel_for(context, args.rows, rotate_row, &job);
}

const char* rope_exact_scalar_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
