// Two kernels: a block a chunk writes the chunk's summary, then a block a row reduces the
// summaries and, with a temperature, draws inside the one chunk that holds the token. A vocabulary
// of 128k is 63 blocks of 8 KB each, so that reading 0.5 MB takes about as long as a launch. A
// last-block reduction in one kernel would need counters that someone has to zero; with
// programmatic dependent launch the second kernel costs less than that.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sample.h"
#include "kernels/cuda/sample.hash.h"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kEach = kSampleChunk / kThreads;  // logits of a thread, consecutive
constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int32_t kNoneBad = 0x7fffffff;

struct Summary {
  double sum;  // of shares relative to `best`; 0 at temperature 0
  float best, second;
  int32_t index;  // of best, in the row
  int32_t bad;    // the first index that is not finite, or kNoneBad
};
static_assert(sizeof(Summary) == 24);

struct Top {
  float best, second;
  int32_t index, bad;
};

__device__ Top merge(const Top& a, const Top& b) {
  const bool first = a.best > b.best || (a.best == b.best && a.index < b.index);
  return {first ? a.best : b.best, fmaxf(first ? b.best : a.best, first ? a.second : b.second),
          first ? a.index : b.index, min(a.bad, b.bad)};
}

__device__ Top warp_top(Top top) {
  for (int step = 16; step > 0; step /= 2) {
    const Top other{
        __shfl_xor_sync(kAllLanes, top.best, step), __shfl_xor_sync(kAllLanes, top.second, step),
        __shfl_xor_sync(kAllLanes, top.index, step), __shfl_xor_sync(kAllLanes, top.bad, step)};
    top = merge(top, other);
  }
  return top;
}

// The block's top, in every thread.
__device__ Top block_top(Top top) {
  __shared__ Top tops[kWarps];
  top = warp_top(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  top = tops[0];
  for (int w = 1; w < kWarps; ++w) top = merge(top, tops[w]);
  __syncthreads();
  return top;
}

// The sum over the threads before this one, and over all of them.
struct Scan {
  double before, total;
};

__device__ Scan block_scan(double value) {
  __shared__ double warps[kWarps];
  const int lane = threadIdx.x % 32;
  double inclusive = value;
  for (int step = 1; step < 32; step *= 2) {
    const double other = __shfl_up_sync(kAllLanes, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  double before = __shfl_up_sync(kAllLanes, inclusive, 1);
  if (lane == 0) before = 0;
  if (lane == 31) warps[threadIdx.x / 32] = inclusive;
  __syncthreads();
  double total = 0;
  double offset = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == static_cast<int>(threadIdx.x / 32)) offset = total;
    total += warps[w];
  }
  __syncthreads();
  return {offset + before, total};
}

__device__ double share(float logit, float highest, double temperature) {
  return exp((static_cast<double>(logit) - static_cast<double>(highest)) / temperature);
}

// A thread's logits of a chunk; -inf beyond the row.
__device__ void load_logits(const float* row, int64_t first, int64_t n, bool vector,
                            float (&logits)[kEach]) {
  if (vector && first + kEach <= n) {
    for (int i = 0; i < kEach; i += 4) {
      *reinterpret_cast<float4*>(logits + i) = *reinterpret_cast<const float4*>(row + first + i);
    }
    return;
  }
  for (int i = 0; i < kEach; ++i) logits[i] = first + i < n ? row[first + i] : -INFINITY;
}

__global__ void __launch_bounds__(kThreads) summarise(const float* logits, int64_t n, bool vector,
                                                      const StepInput* input, Summary* summaries) {
  release_next();
  const double temperature = input->temperature;
  const float* row = logits + blockIdx.y * n;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSampleChunk + threadIdx.x * kEach;
  wait_for_previous();
  alignas(16) float values[kEach];
  load_logits(row, first, n, vector, values);
  Top top{-INFINITY, -INFINITY, static_cast<int32_t>(first), kNoneBad};
  for (int i = 0; i < kEach; ++i) {
    const float value = values[i];
    const auto index = static_cast<int32_t>(first + i);
    if (index < n && !isfinite(value)) top.bad = min(top.bad, index);
    if (value > top.best) {
      top.second = top.best;
      top.best = value;
      top.index = index;
    } else if (value > top.second) {
      top.second = value;
    }
  }
  top = block_top(top);
  double sum = 0;
  if (temperature > 0 && top.bad == kNoneBad) {
    for (int i = 0; i < kEach; ++i) sum += share(values[i], top.best, temperature);
    sum = block_scan(sum).total;
  }
  if (threadIdx.x == 0) {
    summaries[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = {
        sum, top.best, top.second, top.index, top.bad};
  }
}

__global__ void __launch_bounds__(kThreads)
    decide(const float* logits, int64_t n, bool vector, const StepInput* input,
           const Summary* all_summaries, int32_t chunks, Pick* picks) {
  release_next();
  const double temperature = input->temperature;
  const double uniform = input->uniform;
  const int64_t row = blockIdx.x;
  const Summary* summaries = all_summaries + row * chunks;
  wait_for_previous();
  Top top{-INFINITY, -INFINITY, kNoneBad, kNoneBad};
  for (int32_t c = threadIdx.x; c < chunks; c += kThreads) {
    const Summary& s = summaries[c];
    top = merge(top, {s.best, s.second, s.index, s.bad});
  }
  top = block_top(top);
  const float margin = n == 1 ? 0 : top.best - top.second;
  if (top.bad != kNoneBad || !(temperature > 0)) {
    if (threadIdx.x == 0) {
      picks[row] = top.bad != kNoneBad ? Pick{-1 - top.bad, 0} : Pick{top.index, margin};
    }
    return;
  }

  // A thread has `each` consecutive chunks; the one that holds the token is the first whose running
  // sum exceeds `wanted`, or the last with a share.
  __shared__ int32_t first_chunk, last_chunk;
  __shared__ double chunk_before;
  if (threadIdx.x == 0) {
    first_chunk = kNoneBad;
    last_chunk = -1;
  }
  const int32_t each = (chunks + kThreads - 1) / kThreads;
  const int32_t begin = static_cast<int32_t>(threadIdx.x) * each;
  const int32_t end = min(begin + each, chunks);
  const auto chunk_share = [&](int32_t c) {
    return summaries[c].sum * share(summaries[c].best, top.best, temperature);
  };
  double own = 0;
  for (int32_t c = begin; c < end; ++c) own += chunk_share(c);
  const Scan scan = block_scan(own);
  const double wanted = uniform * scan.total;
  double running = scan.before;
  for (int32_t c = begin; c < end; ++c) {
    const double add = chunk_share(c);
    running += add;
    if (!(add > 0)) continue;
    atomicMax(&last_chunk, c);
    if (wanted < running) {
      atomicMin(&first_chunk, c);
      break;
    }
  }
  __syncthreads();
  const int32_t chosen = first_chunk != kNoneBad ? first_chunk : last_chunk;
  if (begin <= chosen && chosen < end) {
    double before = scan.before;
    for (int32_t c = begin; c < chosen; ++c) before += chunk_share(c);
    chunk_before = before;
  }
  __syncthreads();

  // Inside the chunk, relative to the row's highest logit.
  const int64_t first = static_cast<int64_t>(chosen) * kSampleChunk + threadIdx.x * kEach;
  alignas(16) float values[kEach];
  load_logits(logits + row * n, first, n, vector, values);
  double shares[kEach];
  double sum = 0;
  for (int i = 0; i < kEach; ++i) {
    shares[i] = share(values[i], top.best, temperature);
    sum += shares[i];
  }
  double at = chunk_before + block_scan(sum).before;
  int32_t found = kNoneBad;  // the first index whose running sum exceeds `wanted`
  int32_t last = -1;         // the last index with a share
  for (int i = 0; i < kEach; ++i) {
    at += shares[i];
    const auto index = static_cast<int32_t>(first + i);
    if (shares[i] > 0) last = index;
    if (shares[i] > 0 && wanted < at) found = min(found, index);
  }
  __shared__ int32_t first_found, last_possible;
  if (threadIdx.x == 0) {
    first_found = kNoneBad;
    last_possible = -1;
  }
  __syncthreads();
  atomicMin(&first_found, found);
  atomicMax(&last_possible, last);
  __syncthreads();
  if (threadIdx.x == 0) {
    picks[row] = {first_found != kNoneBad ? first_found : last_possible, margin};
  }
}

}  // namespace

void sample_exact(const SampleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  const auto chunks = static_cast<uint32_t>((args.n + kSampleChunk - 1) / kSampleChunk);
  const bool vector = args.n % 4 == 0 && reinterpret_cast<uintptr_t>(args.logits) % 16 == 0;
  auto* summaries =
      static_cast<Summary*>(scratch(context, sample_scratch_bytes(args.rows, args.n)));
  const StepInput* input = queue(context).input;
  launch(context, summarise, dim3(chunks, static_cast<uint32_t>(args.rows)), dim3(kThreads), 0,
         args.logits, args.n, vector, input, summaries);
  launch(context, decide, dim3(static_cast<uint32_t>(args.rows)), dim3(kThreads), 0, args.logits,
         args.n, vector, input, summaries, static_cast<int32_t>(chunks), args.picks);
}

const char* sample_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
