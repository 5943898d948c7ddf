// Speed was no aim. Every kernel waits for the one before it and lets none start early.
#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reference.h"
#include "kernels/cuda/reference.hash.h"
#include "kernels/cuda/reference_threads.cuh"
#include "tensor/blocks.h"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "reference";
__device__ float load(const float* p) {
  return *p;
}
__device__ float load(const __half* p) {
  return __half2float(*p);
}

// One warp a row.
__global__ void normalise(RmsNormArgs args) {
  wait_for_previous();
  const int64_t row = warp_index();
  if (row >= args.rows) return;
  const float* x = args.x + row * args.k;
  float* out = args.out + row * args.k;
  double sum = 0;
  for (int64_t i = threadIdx.x % 32; i < args.k; i += 32) {
    const double value = x[i];
    sum += value * value;
  }
  const double mean = warp_total(sum) / static_cast<double>(args.k);
  const auto scale = static_cast<float>(1.0 / sqrt(mean + static_cast<double>(args.epsilon)));
  for (int64_t i = threadIdx.x % 32; i < args.k; i += 32) out[i] = x[i] * scale * args.weight[i];
}

// One thread a pair.
__global__ void rotate(RopeArgs args, const StepInput* input) {
  wait_for_previous();
  const bool half = args.pairing == RopePairing::kHalf;
  const int64_t pairs = args.dims / 2;
  const int64_t i = thread_index() % pairs;
  const int64_t vector = thread_index() / pairs;
  const int64_t row = vector / args.heads;
  if (row >= args.rows) return;
  const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(args.dims);
  const double position = static_cast<double>(input->first_position + row);
  const double angle = position * pow(args.base, exponent);
  const auto cosine = static_cast<float>(cos(angle));
  const auto sine = static_cast<float>(sin(angle));
  float* x = args.x + vector * args.head_dim;
  const int64_t first = half ? i : 2 * i;
  const int64_t second = half ? i + pairs : 2 * i + 1;
  const float a = x[first];
  const float b = x[second];
  x[first] = a * cosine - b * sine;
  x[second] = b * cosine + a * sine;
}

template <typename T>
__global__ void store_rows(AttentionArgs args, const StepInput* input) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i >= args.rows * args.kv_heads * args.head_dim) return;
  const int64_t head = i / args.head_dim % args.kv_heads;
  const int64_t row = i / args.head_dim / args.kv_heads;
  const int64_t position = input->first_position + row;
  const int64_t to = (head * args.capacity + position) * args.head_dim + i % args.head_dim;
  static_cast<T*>(args.cache_k)[to] = static_cast<T>(args.k[i]);
  static_cast<T*>(args.cache_v)[to] = static_cast<T>(args.v[i]);
}

constexpr int kMostColumns = 32;  // of a lane: head_dim up to 1024

// One warp a row and head, lanes over the head's elements; two passes over the keys.
template <typename T>
__global__ void attend(AttentionArgs args, const StepInput* input) {
  wait_for_previous();
  const int64_t query = warp_index();
  if (query >= args.rows * args.heads) return;
  const int lane = threadIdx.x % 32;
  const int64_t dim = args.head_dim;
  const int64_t kv_head = query % args.heads / (args.heads / args.kv_heads);
  const int64_t positions = input->first_position + query / args.heads + 1;
  const float* q = args.q + query * dim;
  const T* keys = static_cast<const T*>(args.cache_k) + kv_head * args.capacity * dim;
  const T* values = static_cast<const T*>(args.cache_v) + kv_head * args.capacity * dim;
  const auto score_of = [&](int64_t p) {
    float sum = 0;
    for (int64_t i = lane; i < dim; i += 32) sum += q[i] * load(keys + p * dim + i);
    return args.scale * warp_total(sum);
  };
  float largest = -INFINITY;
  for (int64_t p = 0; p < positions; ++p) largest = fmaxf(largest, score_of(p));
  double sum = 0;
  float out[kMostColumns] = {};
  for (int64_t p = 0; p < positions; ++p) {
    const float weight = expf(score_of(p) - largest);
    sum += static_cast<double>(weight);
    for (int j = 0; j < kMostColumns; ++j) {
      const int64_t i = lane + 32 * j;
      if (i < dim) out[j] += weight * load(values + p * dim + i);
    }
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (int j = 0; j < kMostColumns; ++j) {
    if (lane + 32 * j < dim) args.out[query * dim + lane + 32 * j] = out[j] * inverse;
  }
}

__global__ void gate(SwigluArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i >= args.rows * args.k) return;
  const float x = args.gate[i];
  args.out[i] = x / (1.0F + expf(-x)) * args.up[i];
}

__global__ void sum(AddArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i < args.rows * args.k) args.out[i] = args.x[i] + args.y[i];
}

// The highest and the second highest of some logits; bad is the index of the first that is not
// finite, or n.
struct Highest {
  float best = -INFINITY, second = -INFINITY;
  int64_t index = 0, bad = 0;
};

__device__ Highest better(const Highest& a, const Highest& b) {
  const bool first = a.best > b.best || (a.best == b.best && a.index < b.index);
  Highest result = first ? a : b;
  result.second = fmaxf(first ? b.best : a.best, result.second);
  result.bad = a.bad < b.bad ? a.bad : b.bad;
  return result;
}

// One warp a row: lanes over the logits for the highest, then lane 0 in index order for the draw.
__global__ void pick(SampleArgs args, const StepInput* input) {
  wait_for_previous();
  const int64_t row = warp_index();
  if (row >= args.rows) return;
  const int lane = threadIdx.x % 32;
  const float* logits = args.logits + row * args.n;
  Highest highest;
  highest.index = lane;
  highest.bad = args.n;
  for (int64_t i = lane; i < args.n; i += 32) {
    const float logit = logits[i];
    if (!isfinite(logit)) {
      if (i < highest.bad) highest.bad = i;
    } else if (logit > highest.best) {
      highest.second = highest.best;
      highest.best = logit;
      highest.index = i;
    } else if (logit > highest.second) {
      highest.second = logit;
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    Highest other;
    other.best = __shfl_xor_sync(kWholeWarp, highest.best, step);
    other.second = __shfl_xor_sync(kWholeWarp, highest.second, step);
    other.index = __shfl_xor_sync(kWholeWarp, highest.index, step);
    other.bad = __shfl_xor_sync(kWholeWarp, highest.bad, step);
    highest = better(highest, other);
  }
  if (lane != 0) return;
  if (highest.bad < args.n) {
    args.picks[row] = {static_cast<int32_t>(-1 - highest.bad), 0};
    return;
  }
  Pick result{static_cast<int32_t>(highest.index), args.n == 1 ? 0 : highest.best - highest.second};
  if (input->temperature > 0) {
    const auto share = [&](int64_t i) {
      return exp((static_cast<double>(logits[i]) - static_cast<double>(highest.best)) /
                 input->temperature);
    };
    double total = 0;
    for (int64_t i = 0; i < args.n; ++i) total += share(i);
    const double wanted = input->uniform * total;
    double running = 0;
    int64_t drawn = 0;  // the last possible, where rounding leaves `wanted` beyond the last sum
    for (int64_t i = 0; i < args.n; ++i) {
      const double weight = share(i);
      if (weight > 0) drawn = i;
      running += weight;
      if (wanted < running) break;
    }
    result.token = static_cast<int32_t>(drawn);
  }
  args.picks[row] = result;
}

template <typename T>
void attend_rows(const AttentionArgs& args, KernelContext& context) {
  const StepInput* input = queue(context).input;
  launch(context, store_rows<T>, threads_for(args.rows * args.kv_heads * args.head_dim),
         dim3(kReferenceThreads), 0, args, input);
  launch(context, attend<T>, warps_for(args.rows * args.heads), dim3(kReferenceThreads), 0, args,
         input);
}

}  // namespace

void rms_norm_reference(const RmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, normalise, warps_for(args.rows), dim3(kReferenceThreads), 0, args);
}

void rope_reference(const RopeArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const int64_t count = args.rows * args.heads * (args.dims / 2);
  if (count == 0) return;
  launch(context, rotate, threads_for(count), dim3(kReferenceThreads), 0, args,
         queue(context).input);
}

void attention_reference(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  if (args.head_dim > 32 * kMostColumns) return fail(context, "a head of more than 1024");
  switch (args.kv_type) {
    case DType::kF32:
      return attend_rows<float>(args, context);
    case DType::kF16:
      return attend_rows<__half>(args, context);
    default:
      return fail(context, "a cache of this type");
  }
}

void swiglu_reference(const SwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, gate, threads_for(args.rows * args.k), dim3(kReferenceThreads), 0, args);
}

void add_reference(const AddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, sum, threads_for(args.rows * args.k), dim3(kReferenceThreads), 0, args);
}

void sample_reference(const SampleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, pick, warps_for(args.rows), dim3(kReferenceThreads), 0, args,
         queue(context).input);
}

const char* embedding_reference_hash() {
  return kSourceHash;
}
const char* rms_norm_reference_hash() {
  return kSourceHash;
}
const char* rope_reference_hash() {
  return kSourceHash;
}
const char* attention_reference_hash() {
  return kSourceHash;
}
const char* swiglu_reference_hash() {
  return kSourceHash;
}
const char* add_reference_hash() {
  return kSourceHash;
}
const char* sample_reference_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
