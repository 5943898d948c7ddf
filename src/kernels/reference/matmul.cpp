// Each output is a float32 sum in ascending k of x[k] * w[k], multiplied and added separately.
//
// Compilers cannot vectorise that sum, but they can compute several rows side by side: the
// activations are transposed into blocks of 32 rows (8 for the rest, padded with zeros), so that
// the innermost loop runs over rows. A weight row is dequantised once for all of them.
#include <cstring>

#include "kernels/reference/kernels.h"
#include "kernels/reference/matmul.hash.h"
#include "tensor/dtype.h"

namespace reckon::kernels::reference {
namespace {

constexpr int64_t kWide = 32;
constexpr int64_t kNarrow = 8;
constexpr int64_t kWeightRows = 8;  // taken together, so that a block is fetched once for them

int64_t padded_rows(int64_t rows) {
  return (rows + kNarrow - 1) / kNarrow * kNarrow;
}

// The width of the block that starts at `row`.
int64_t block_width(int64_t row, int64_t rows) {
  return row + kWide <= rows ? kWide : kNarrow;
}

struct Job {
  const MatmulArgs* args;
  float* transposed;   // blocks of [k, width], one after another
  float* weight_rows;  // [threads, kWeightRows, k]
  int64_t weight_stride;
};

void transpose_block(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const int64_t first = task * kNarrow;
  const int64_t block = first / kWide * kWide;
  const bool wide = block + kWide <= args.rows;
  const int64_t width = wide ? kWide : kNarrow;
  float* out = job.transposed + (wide ? block * args.k + first - block : first * args.k);
  for (int64_t r = 0; r < kNarrow; ++r) {
    const float* x = args.x + (first + r) * args.k;
    const bool real = first + r < args.rows;
    for (int64_t i = 0; i < args.k; ++i) out[i * width + r] = real ? x[i] : 0.0F;
  }
}

// Four rows side by side. A plain array of sums would do, but g++ 12 keeps it in memory instead of
// registers, at a fifth of the speed.
using Rows4 = float __attribute__((vector_size(16)));

template <int64_t kWidth>
void dot_block(const float* x, const float* w, int64_t k, float* out, int64_t out_stride,
               int64_t count) {
  Rows4 sums[kWidth / 4] = {};
  for (int64_t i = 0; i < k; ++i, x += kWidth) {
    const float weight = w[i];
    for (int64_t v = 0; v < kWidth / 4; ++v) {
      Rows4 rows;
      std::memcpy(&rows, x + 4 * v, sizeof rows);
      sums[v] += rows * weight;
    }
  }
  for (int64_t r = 0; r < count; ++r) out[r * out_stride] = sums[r / 4][r % 4];
}

// Task: a few weight rows against every activation row.
void multiply_weight_rows(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const int64_t first = task * kWeightRows;
  const int64_t weight_rows = args.n - first < kWeightRows ? args.n - first : kWeightRows;
  float* weights = job.weight_rows + thread * kWeightRows * args.k;
  for (int64_t j = 0; j < weight_rows; ++j) {
    const char* row = static_cast<const char*>(args.weight) + (first + j) * job.weight_stride;
    dequantize_row(args.weight_type, row, args.k, weights + j * args.k);
  }
  for (int64_t row = 0; row < args.rows;) {
    const int64_t width = block_width(row, args.rows);
    const int64_t count = args.rows - row < width ? args.rows - row : width;
    const float* x = job.transposed + row * args.k;
    for (int64_t j = 0; j < weight_rows; ++j) {
      float* out = args.out + row * args.n + first + j;
      const auto dot = width == kWide ? dot_block<kWide> : dot_block<kNarrow>;
      dot(x, weights + j * args.k, args.k, out, args.n, count);
    }
    row += width;
  }
}

}  // namespace

uint64_t matmul_scratch_bytes(int64_t rows, int64_t k, int threads) {
  return static_cast<uint64_t>((padded_rows(rows) + threads * kWeightRows) * k) * sizeof(float);
}

void matmul(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const int threads = thread_count(context);
  auto* memory =
      static_cast<float*>(scratch(context, matmul_scratch_bytes(args.rows, args.k, threads)));
  Job job{&args, memory, memory + padded_rows(args.rows) * args.k,
          row_bytes(args.weight_type, args.k)};
  parallel_for(context, padded_rows(args.rows) / kNarrow, transpose_block, &job);
  parallel_for(context, (args.n + kWeightRows - 1) / kWeightRows, multiply_weight_rows, &job);
}

const char* matmul_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
