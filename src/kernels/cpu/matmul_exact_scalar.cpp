// The canonical order in plain C++: what runs on machines without AVX2, and the second opinion on
// what the vector variants compute, bit for bit.
//
// Integer dots are left to the compiler, which has pmaddwd even on the oldest x86-64. A weight row
// is taken once for all activation rows, block by block.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_scalar.hash.h"
#include "kernels/cpu/matmul_layout.h"
#include "tensor/dtype.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kTaskRows = 8;  // weight rows of one task
constexpr int64_t kAtOnce = 8;    // activation rows that share an unpacked weight

struct Job {
  const MatmulArgs* args;
  RowGroup* groups;  // [rows, k / 32], integer formats only
  int64_t blocks;
  int64_t weight_stride;
};

void quantise_group(const float* x, RowGroup& group) {
  int32_t magnitude = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(x[i]) & kMagnitudeMask;
    magnitude = bits > magnitude ? bits : magnitude;
  }
  std::memset(&group, 0, sizeof group);
  if (magnitude >= kInfinityBits) {
    group.scale = group.sum = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  if (magnitude < kSmallestMagnitude) return;
  const auto largest = std::bit_cast<float>(magnitude);
  const float inverse = kLargestCode / largest;
  int32_t sum = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    group.codes[i] = static_cast<int16_t>(std::lrintf(x[i] * inverse));
    sum += group.codes[i];
  }
  group.scale = largest / kLargestCode;
  group.sum = group.scale * static_cast<float>(sum);
}

void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  for (int64_t b = 0; b < job.blocks; ++b) {
    quantise_group(job.args->x + row * job.args->k + b * kGroup, job.groups[row * job.blocks + b]);
  }
}

// One weight block, unpacked: w = scale * code + minimum.
struct Unpacked {
  int16_t codes[32];
  float scale;
  float minimum;
};

struct Q8 {
  static constexpr bool kHasMinimum = false;
  static Unpacked unpack(const char* row, int64_t b) {
    BlockQ8_0 block;
    std::memcpy(&block, row + b * static_cast<int64_t>(sizeof block), sizeof block);
    Unpacked out{{}, half_to_float(block.scale), 0};
    for (int i = 0; i < 32; ++i) {
      const int code = block.codes[i];
      out.codes[i] = static_cast<int16_t>(code);
    }
    return out;
  }
};

struct Q4 {
  static constexpr bool kHasMinimum = true;
  static Unpacked unpack(const char* row, int64_t b) {
    BlockQ4_1 block;
    std::memcpy(&block, row + b * static_cast<int64_t>(sizeof block), sizeof block);
    Unpacked out{{}, half_to_float(block.scale), half_to_float(block.minimum)};
    for (int i = 0; i < 16; ++i) {
      out.codes[i] = static_cast<int16_t>(block.codes[i] & 15);
      out.codes[i + 16] = static_cast<int16_t>(block.codes[i] >> 4);
    }
    return out;
  }
};

int32_t dot(const int16_t* a, const int16_t* b) {
  int32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += a[i] * b[i];
  return sum;
}

// One weight row against `count` activation rows.
template <typename Format>
void integer_dots(const char* weight, const RowGroup* groups, int64_t blocks, int64_t count,
                  float* out, int64_t out_stride) {
  float totals[kAtOnce] = {};
  for (int64_t first = 0; first < blocks; first += kSegmentBlocks) {
    const int64_t end = first + kSegmentBlocks < blocks ? first + kSegmentBlocks : blocks;
    float sums[kAtOnce] = {};
    for (int64_t b = first; b < end; ++b) {
      const Unpacked block = Format::unpack(weight, b);
      for (int64_t r = 0; r < count; ++r) {
        const RowGroup& group = groups[r * blocks + b];
        const auto product = static_cast<float>(dot(block.codes, group.codes));
        sums[r] = std::fmaf(product, block.scale * group.scale, sums[r]);
        if (Format::kHasMinimum) sums[r] = std::fmaf(block.minimum, group.sum, sums[r]);
      }
    }
    for (int64_t r = 0; r < count; ++r) totals[r] += sums[r];
  }
  for (int64_t r = 0; r < count; ++r) out[r * out_stride] = totals[r];
}

// Tasks: kTaskRows weight rows against all activation rows.
template <typename Format>
void multiply_integer(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  for (int64_t j = task * kTaskRows; j < (task + 1) * kTaskRows && j < args.n; ++j) {
    const char* weight = static_cast<const char*>(args.weight) + j * job.weight_stride;
    for (int64_t r = 0; r < args.rows; r += kAtOnce) {
      const int64_t count = args.rows - r < kAtOnce ? args.rows - r : kAtOnce;
      integer_dots<Format>(weight, job.groups + r * job.blocks, job.blocks, count,
                           args.out + r * args.n + j, args.n);
    }
  }
}

float fold(const float* lanes) {
  float halves[8];
  for (int l = 0; l < 8; ++l) halves[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) halves[l] += halves[l + 4];
  for (int l = 0; l < 2; ++l) halves[l] += halves[l + 2];
  return halves[0] + halves[1];
}

// lanes of one segment of `count` elements, from +0.
void segment_lanes(const float* weights, const float* x, int64_t count, float* lanes) {
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) {
    for (int64_t l = 0; l < kFloatLanes; ++l) {
      lanes[l] = std::fmaf(weights[i + l], x[i + l], lanes[l]);
    }
  }
  if (i == count) return;
  for (int64_t l = 0; l < kFloatLanes; ++l) {
    const bool real = i + l < count;
    lanes[l] = std::fmaf(real ? weights[i + l] : 0.0F, real ? x[i + l] : 0.0F, lanes[l]);
  }
}

// One weight row against `count` activation rows.
void float_dots(DType type, const char* weight, const float* x, int64_t k, int64_t count,
                float* out, int64_t out_stride) {
  float totals[kAtOnce][kFloatLanes] = {};
  float converted[kSegment];
  for (int64_t first = 0; first < k; first += kSegment) {
    const int64_t length = k - first < kSegment ? k - first : kSegment;
    dequantize_row(type, weight + row_bytes(type, first), length, converted);
    for (int64_t r = 0; r < count; ++r) {
      float lanes[kFloatLanes] = {};
      segment_lanes(converted, x + r * k + first, length, lanes);
      for (int64_t l = 0; l < kFloatLanes; ++l) totals[r][l] += lanes[l];
    }
  }
  for (int64_t r = 0; r < count; ++r) out[r * out_stride] = fold(totals[r]);
}

void multiply_float(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  for (int64_t j = task * kTaskRows; j < (task + 1) * kTaskRows && j < args.n; ++j) {
    const char* weight = static_cast<const char*>(args.weight) + j * job.weight_stride;
    for (int64_t r = 0; r < args.rows; r += kAtOnce) {
      const int64_t count = args.rows - r < kAtOnce ? args.rows - r : kAtOnce;
      float_dots(args.weight_type, weight, args.x + r * args.k, args.k, count,
                 args.out + r * args.n + j, args.n);
    }
  }
}

}  // namespace

void matmul_exact_scalar(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactScalar, kSourceHash, args);
  const int64_t tasks = (args.n + kTaskRows - 1) / kTaskRows;
  Job job{&args, nullptr, args.k / kGroup, row_bytes(args.weight_type, args.k)};
  const bool q8 = args.weight_type == DType::kQ8_0;
  if (q8 || args.weight_type == DType::kQ4_1) {
    const uint64_t bytes = scalar_matmul_scratch(args.weight_type, args.rows, args.k).total;
    job.groups = static_cast<RowGroup*>(scratch(context, bytes));
    parallel_for(context, args.rows, quantise_row, &job);
    parallel_for(context, tasks, q8 ? multiply_integer<Q8> : multiply_integer<Q4>, &job);
  } else {
    parallel_for(context, tasks, multiply_float, &job);
  }
}

const char* matmul_exact_scalar_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
