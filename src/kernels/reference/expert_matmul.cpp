// Each product is that of dot.h with a weight row in float32, which is dequantised once for all
// rows that selected its expert.
#include <cmath>

#include "kernels/reference/dot.h"
#include "kernels/reference/expert_matmul.hash.h"
#include "kernels/reference/kernels.h"
#include "tensor/dtype.h"

namespace reckon::kernels::reference {
namespace {

constexpr int64_t kWeightRows = 8;  // of one task

template <typename Args>
struct Job {
  const Args* args;
  float* weight_rows;  // [threads, matrices, k]
};

// Calls visit(r, j) for each row r whose j-th expert this is.
template <typename Args, typename Visit>
void for_each_pair(const Args& args, int64_t expert, const Visit& visit) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const int32_t* ids = selected_experts(args.selection, r, args.top_k);
    for (int64_t j = 0; j < args.top_k; ++j) {
      if (ids[j] == expert) visit(r, j);
    }
  }
}

template <typename Args>
bool is_selected(const Args& args, int64_t expert) {
  bool any = false;
  for_each_pair(args, expert, [&](int64_t, int64_t) { any = true; });
  return any;
}

// Row `index` of the weight.
template <typename Args>
void dequantise(const Args& args, const void* weight, int64_t index, float* out) {
  const int64_t stride = row_bytes(args.weight_type, args.k);
  dequantize_row(args.weight_type, static_cast<const char*>(weight) + index * stride, args.k, out);
}

// Task: a few weight rows of one expert.
void swiglu_rows(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job<ExpertMatmulSwigluArgs>*>(argument);
  const ExpertMatmulSwigluArgs& args = *job.args;
  const int64_t tasks = (args.n + kWeightRows - 1) / kWeightRows;  // of an expert
  const int64_t expert = task / tasks;
  const int64_t first = task % tasks * kWeightRows;
  if (!is_selected(args, expert)) return;
  float* gate = job.weight_rows + thread * 2 * args.k;
  float* up = gate + args.k;
  for (int64_t i = first; i < first + kWeightRows && i < args.n; ++i) {
    dequantise(args, args.gate, expert * args.n + i, gate);
    dequantise(args, args.up, expert * args.n + i, up);
    for_each_pair(args, expert, [&](int64_t r, int64_t j) {
      const float* x = args.x + r * args.k;
      const float g = dot(gate, x, args.k);
      args.out[(r * args.top_k + j) * args.n + i] = g / (1.0F + std::exp(-g)) * dot(up, x, args.k);
    });
  }
}

// Task: a few columns of the output, expert by expert.
void combine_rows(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job<ExpertMatmulCombineArgs>*>(argument);
  const ExpertMatmulCombineArgs& args = *job.args;
  const int64_t first = task * kWeightRows;
  const int64_t end = first + kWeightRows < args.n ? first + kWeightRows : args.n;
  float* down = job.weight_rows + thread * args.k;
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t i = first; i < end; ++i) args.out[r * args.n + i] = 0;
  }
  for (int64_t expert = 0; expert < args.experts; ++expert) {
    if (!is_selected(args, expert)) continue;
    for (int64_t i = first; i < end; ++i) {
      dequantise(args, args.down, expert * args.n + i, down);
      for_each_pair(args, expert, [&](int64_t r, int64_t j) {
        const float weight = selected_weights(args.selection, r, args.top_k)[j];
        const float* x = args.x + (r * args.top_k + j) * args.k;
        args.out[r * args.n + i] += weight * dot(down, x, args.k);
      });
    }
  }
}

}  // namespace

uint64_t expert_scratch_bytes(int64_t matrices, int64_t k, int threads) {
  return static_cast<uint64_t>(matrices * k * threads) * sizeof(float);
}

void expert_matmul_swiglu(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const uint64_t bytes = expert_scratch_bytes(2, args.k, thread_count(context));
  Job<ExpertMatmulSwigluArgs> job{&args, static_cast<float*>(scratch(context, bytes))};
  parallel_for(context, args.experts * ((args.n + kWeightRows - 1) / kWeightRows), swiglu_rows,
               &job);
}

void expert_matmul_combine(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const uint64_t bytes = expert_scratch_bytes(1, args.k, thread_count(context));
  Job<ExpertMatmulCombineArgs> job{&args, static_cast<float*>(scratch(context, bytes))};
  parallel_for(context, (args.n + kWeightRows - 1) / kWeightRows, combine_rows, &job);
}

const char* expert_matmul_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
