// One warp a row. The experts are taken one after another, each the best of those that come behind
// the last one, so that nothing has to be marked or sorted: the last one taken says which experts
// are selected, and a walk over the experts in order writes them down.
#include "kernels/cuda/experts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/route.hash.h"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kWarps = 4;
constexpr unsigned kWholeWarp = 0xffffffffU;

// An expert's place in the order of selection: higher logits first, then lower indices.
struct Place {
  float logit;
  int index;
};

__device__ __forceinline__ bool is_before(Place a, Place b) {
  return a.logit > b.logit || (a.logit == b.logit && a.index < b.index);
}

// What is no number comes last.
__device__ __forceinline__ Place place_of(const float* logits, int index) {
  const float logit = logits[index];
  return {isnan(logit) ? -INFINITY : logit, index};
}

__device__ __forceinline__ Place best_of_warp(Place best) {
  for (int step = 16; step > 0; step /= 2) {
    const Place other = {__shfl_xor_sync(kWholeWarp, best.logit, step),
                         __shfl_xor_sync(kWholeWarp, best.index, step)};
    if (is_before(other, best)) best = other;
  }
  return best;
}

// The top_k-th expert in the order of selection; `first` gets the first.
__device__ Place last_selected(const float* logits, int experts, int64_t top_k, Place& first) {
  const int lane = threadIdx.x % 32;
  Place last = {INFINITY, -1};
  for (int64_t taken = 0; taken < top_k; ++taken) {
    Place best = {-INFINITY, experts};
    for (int e = lane; e < experts; e += 32) {
      const Place own = place_of(logits, e);
      if (is_before(last, own) && is_before(own, best)) best = own;
    }
    last = best_of_warp(best);
    if (taken == 0) first = last;
  }
  return last;
}

__device__ __forceinline__ double warp_total(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

__global__ void __launch_bounds__(kWarps * 32) select(const __grid_constant__ RouteArgs args) {
  release_next();
  wait_for_previous();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) return;
  const int lane = threadIdx.x % 32;
  const auto experts = static_cast<int>(args.experts);
  const float* logits = args.logits + row * args.experts;
  Place first{};
  const Place last = last_selected(logits, experts, args.top_k, first);
  // exp(x) of a NaN is in the sum of all; times 0 it reaches the weights in either case.
  double all = 0;
  double selected = 0;
  for (int e = lane; e < experts; e += 32) {
    const auto share = static_cast<double>(expf(__fsub_rn(logits[e], first.logit)));
    all += share;
    if (!is_before(last, place_of(logits, e))) selected += share;
  }
  all = warp_total(all);
  selected = warp_total(selected);
  const double total = args.weights == RouteWeights::kOfSelected ? selected + 0 * all : all;
  float* words = args.selection + row * 2 * args.top_k;
  int written = 0;
  for (int base = 0; base < experts; base += 32) {
    const int e = base + lane;
    const bool chosen = e < experts && !is_before(last, place_of(logits, e));
    const unsigned mask = __ballot_sync(kWholeWarp, chosen);
    if (chosen) {
      const int at = written + __popc(mask & ((1U << lane) - 1));
      const float share = expf(__fsub_rn(logits[e], first.logit));
      words[at] = __int_as_float(e);
      words[args.top_k + at] = static_cast<float>(static_cast<double>(share) / total);
    }
    written += __popc(mask);
  }
}

}  // namespace

void route_exact(const RouteArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  const dim3 grid(static_cast<uint32_t>((args.rows + kWarps - 1) / kWarps));
  launch(context, select, grid, dim3(kWarps * 32), 0, args);
}

const char* route_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
