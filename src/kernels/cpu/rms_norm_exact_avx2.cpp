// RMSNorm, alone and behind the sum of the residual stream, with AVX2. The reference's sum of
// squares is one chain of float64 additions, four cycles each: 576 of them took longer than the
// rest of the norm. Adding first and then reading the sum again keeps a row in the first-level
// cache, and gives the fused kernel the bits of its parts by construction.
#include <immintrin.h>

#include "kernels/cpu/norm.h"
#include "kernels/cpu/norm_avx2.h"
#include "kernels/cpu/rms_norm_exact_avx2.hash.h"
#include "kernels/cpu/vectors_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
// Of a task, at least a row: about a microsecond, below which a second thread does not pay.
constexpr int64_t kTaskValues = 8192;

int64_t task_rows(int64_t k) {
  return k < kTaskValues ? kTaskValues / k : 1;
}

int64_t tasks_of(int64_t rows, int64_t k) {
  return (rows + task_rows(k) - 1) / task_rows(k);
}

int64_t task_end(int64_t task, int64_t rows, int64_t k) {
  const int64_t end = (task + 1) * task_rows(k);
  return end < rows ? end : rows;
}

// In decode nothing has read the norm's weight since the pass before, and its lines come from
// memory while the row is summed.
void fetch_ahead(const float* weight, int64_t k) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t i = 0; i < k; i += kLine) _mm_prefetch(weight + i, _MM_HINT_T0);
}

void normalise(const float* x, const float* weight, float epsilon, float* out, int64_t k) {
  const __m256 scale = norm_scale(x, k, epsilon);
  for (int64_t i = 0; i < k; i += 8) {
    const __m256 scaled = _mm256_mul_ps(load8(x + i, k - i), scale);
    store8(out + i, k - i, _mm256_mul_ps(scaled, load8(weight + i, k - i)));
  }
}

void normalise_rows(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const RmsNormArgs*>(argument);
  const int64_t k = args.k;
  fetch_ahead(args.weight, k);
  for (int64_t r = task * task_rows(k); r < task_end(task, args.rows, k); ++r) {
    normalise(args.x + r * k, args.weight, args.epsilon, args.out + r * k, k);
  }
}

void add_and_normalise_rows(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const AddRmsNormArgs*>(argument);
  const int64_t k = args.k;
  fetch_ahead(args.weight, k);
  for (int64_t r = task * task_rows(k); r < task_end(task, args.rows, k); ++r) {
    float* residual = args.residual + r * k;
    add_values(residual, args.x + r * k, residual, k);
    normalise(residual, args.weight, args.epsilon, args.out + r * k, k);
  }
}

}  // namespace

void rms_norm_exact_avx2(const RmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  RmsNormArgs copy = args;
  parallel_for(context, tasks_of(args.rows, args.k), normalise_rows, &copy);
}

void add_rms_norm_exact_avx2(const AddRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  AddRmsNormArgs copy = args;
  parallel_for(context, tasks_of(args.rows, args.k), add_and_normalise_rows, &copy);
}

const char* rms_norm_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
