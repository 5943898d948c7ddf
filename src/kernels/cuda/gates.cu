// Copies and one sum, bound by memory: one thread an element, a row a block of the grid's y.
#include "kernels/cuda/gates.h"
#include "kernels/cuda/gates.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kThreads = 256;
constexpr int64_t kMostRows = 65535;  // of a grid's y

// A grid of one thread a column, rows in y, each block taking every gridDim.y-th.
dim3 grid_of(int64_t rows, int64_t columns) {
  return dim3(static_cast<uint32_t>((columns + kThreads - 1) / kThreads),
              static_cast<uint32_t>(rows < kMostRows ? rows : kMostRows));
}

__device__ __forceinline__ int64_t own_column() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__global__ void __launch_bounds__(kThreads) split(const __grid_constant__ SplitGateArgs args) {
  release_next();
  wait_for_previous();
  const int64_t width = args.heads * args.dim;
  const int64_t column = own_column();
  if (column >= width) return;
  const int64_t from = column + column / args.dim * args.dim;
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    args.q[row * width + column] = args.x[row * 2 * width + from];
    args.gate[row * width + column] = args.x[row * 2 * width + from + args.dim];
  }
}

__global__ void __launch_bounds__(kThreads) join(const __grid_constant__ ConcatArgs args) {
  release_next();
  wait_for_previous();
  const int64_t width = args.a_columns + args.b_columns;
  const int64_t column = own_column();
  if (column >= width) return;
  const int64_t in_b = column - args.a_columns;
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    args.out[row * width + column] =
        in_b < 0 ? args.a[row * args.a_columns + column] : args.b[row * args.b_columns + in_b];
  }
}

__global__ void __launch_bounds__(kThreads) add_gated(const __grid_constant__ GatedAddArgs args) {
  release_next();
  wait_for_previous();
  const int64_t column = own_column();
  if (column >= args.k) return;
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    float* out = args.out + row * args.k + column;
    *out = __fadd_rn(*out, __fmul_rn(sigmoid(args.gate[row]), args.y[row * args.k + column]));
  }
}

}  // namespace

void split_gate_exact(const SplitGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, split, grid_of(args.rows, args.heads * args.dim), dim3(kThreads), 0, args);
}

void concat_exact(const ConcatArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, join, grid_of(args.rows, args.a_columns + args.b_columns), dim3(kThreads), 0,
         args);
}

void gated_add_exact(const GatedAddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, add_gated, grid_of(args.rows, args.k), dim3(kThreads), 0, args);
}

const char* gates_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
