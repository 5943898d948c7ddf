// The reference kernel of routing: one thread a row, as the CPU's reference does it.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reference.h"
#include "kernels/cuda/reference_route.hash.h"
#include "kernels/cuda/reference_threads.cuh"

namespace reckon::kernels::cuda {
namespace {

// Puts the experts of the highest logits in ids, best first; ties to the lower index. A NaN is
// never above anything.
__device__ void select(const float* logits, int64_t experts, int64_t top_k, int32_t* ids) {
  int64_t count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (count == top_k && !(logits[e] > logits[ids[count - 1]])) continue;
    if (count < top_k) ++count;
    int64_t at = count - 1;
    for (; at > 0 && logits[e] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
    ids[at] = static_cast<int32_t>(e);
  }
}

__device__ void sort_ascending(int32_t* ids, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const int32_t id = ids[i];
    int64_t at = i;
    for (; at > 0 && ids[at - 1] > id; --at) ids[at] = ids[at - 1];
    ids[at] = id;
  }
}

__global__ void route(RouteArgs args) {
  wait_for_previous();
  const int64_t row = thread_index();
  if (row >= args.rows) return;
  const float* logits = args.logits + row * args.experts;
  float* words = args.selection + row * 2 * args.top_k;
  auto* ids = reinterpret_cast<int32_t*>(words);
  float* weights = words + args.top_k;
  select(logits, args.experts, args.top_k, ids);
  const float highest = logits[ids[0]];
  sort_ascending(ids, args.top_k);
  double all = 0;
  double selected = 0;
  for (int64_t e = 0; e < args.experts; ++e) all += static_cast<double>(expf(logits[e] - highest));
  for (int64_t j = 0; j < args.top_k; ++j) {
    weights[j] = expf(logits[ids[j]] - highest);
    selected += static_cast<double>(weights[j]);
  }
  // A NaN among the logits is in the sum of all; times 0 it reaches the weights in either case.
  const double total = args.weights == RouteWeights::kOfSelected ? selected + 0 * all : all;
  for (int64_t j = 0; j < args.top_k; ++j) {
    weights[j] = static_cast<float>(static_cast<double>(weights[j]) / total);
  }
}

}  // namespace

void route_reference(const RouteArgs& args, KernelContext& context) {
  stamp(context, "reference", kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, route, threads_for(args.rows), dim3(kReferenceThreads), 0, args);
}

const char* route_reference_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
