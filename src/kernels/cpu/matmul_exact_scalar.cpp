// hashed with "kernels/cpu/expert_matmul.cpp"
// The canonical order in plain C++: what runs on machines without AVX2, and the second opinion on
// what the vector variants compute, bit for bit.
//
// Integer dots are left to the compiler, which has pmaddwd even on the oldest x86-64. A weight row
// is taken once for all activation rows, group by group.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_scalar.hash.h"
#include "kernels/cpu/matmul_job.h"
#include "kernels/cpu/matmul_layout.h"
#include "tensor/dtype.h"
#include "tensor/superblocks.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kTaskRows = 8;  // weight rows of one task
constexpr int64_t kAtOnce = 8;    // activation rows that share an unpacked weight

// The first `count` of the group's activations are at x, the others are zeros.
void quantise_group(const float* x, int64_t count, float largest_code, RowGroup& group) {
  float padded[kGroup] = {};
  if (count < kGroup) {
    for (int64_t i = 0; i < count; ++i) padded[i] = x[i];
    x = padded;
  }
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
  const float inverse = largest_code / largest;
  int32_t sum = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    group.codes[i] = static_cast<int16_t>(std::lrintf(x[i] * inverse));
    sum += group.codes[i];
  }
  group.scale = largest / largest_code;
  group.sum = group.scale * static_cast<float>(sum);
}

void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t k = job.args->k;
  const float* x = activation_row(job, row);
  auto* groups = reinterpret_cast<RowGroup*>(job.activations) + row * job.groups;
  const float largest = job.args->weight_type == DType::kQ6_K ? kLargestCodeQ6 : kLargestCode;
  for (int64_t g = 0; g < job.groups; ++g) {
    quantise_group(x + g * kGroup, k - g * kGroup, largest, groups[g]);
  }
}

// The weights of one group, unpacked: w = scale * code + minimum.
struct Unpacked {
  int16_t codes[32];
  float scale;
  float minimum;
};

template <typename Block>
Block block_at(const char* row, int64_t index) {
  Block block;
  std::memcpy(&block, row + index * static_cast<int64_t>(sizeof block), sizeof block);
  return block;
}

// Codes of one byte each, kGroups groups a block.
template <typename Block, int64_t kGroups>
struct ByteCodes {
  static constexpr bool kHasMinimum = false;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<Block>(row, g / kGroups);
    const int8_t* codes = block.codes + g % kGroups * kGroup;
    Unpacked out{{}, half_to_float(block.scale), 0};
    for (int i = 0; i < 32; ++i) {
      const int code = codes[i];
      out.codes[i] = static_cast<int16_t>(code);
    }
    return out;
  }
};

using Q8 = ByteCodes<BlockQ8_0, 1>;
using P8 = ByteCodes<BlockP8, 2>;

struct Q4_0 {
  static constexpr bool kHasMinimum = false;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<BlockQ4_0>(row, g);
    Unpacked out{{}, half_to_float(block.scale), 0};
    for (int i = 0; i < 16; ++i) {
      out.codes[i] = static_cast<int16_t>((block.codes[i] & 15) - 8);
      out.codes[i + 16] = static_cast<int16_t>((block.codes[i] >> 4) - 8);
    }
    return out;
  }
};

struct Q4_K {
  static constexpr bool kHasMinimum = true;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<BlockQ4_K>(row, g / 8);
    const int part = static_cast<int>(g % 8);
    const SixBitPart values = six_bit_part(block.parts, part);
    Unpacked out{{},
                 half_to_float(block.scale) * static_cast<float>(values.scale),
                 -half_to_float(block.minimum) * static_cast<float>(values.minimum)};
    for (int i = 0; i < 32; ++i) {
      out.codes[i] = static_cast<int16_t>(nibble_of_64(block.codes, 32 * part + i));
    }
    return out;
  }
};

struct Q6_K {
  static constexpr bool kHasMinimum = false;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<BlockQ6_K>(row, g / 8);
    Unpacked out{{}, half_to_float(block.scale), 0};
    for (int i = 0; i < 32; ++i) {
      const int element = static_cast<int>(g % 8) * 32 + i;
      const int plane = element % 128 / 32;
      const int byte = block.low[element / 128 * 64 + element % 64];
      const int code = (plane < 2 ? byte & 15 : byte >> 4) | two_bits(block.high, element) << 4;
      out.codes[i] = static_cast<int16_t>(block.parts[element / 16] * (code - 32));
    }
    return out;
  }
};

struct Q4 {
  static constexpr bool kHasMinimum = true;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<BlockQ4_1>(row, g);
    Unpacked out{{}, half_to_float(block.scale), half_to_float(block.minimum)};
    for (int i = 0; i < 16; ++i) {
      out.codes[i] = static_cast<int16_t>(block.codes[i] & 15);
      out.codes[i + 16] = static_cast<int16_t>(block.codes[i] >> 4);
    }
    return out;
  }
};

struct P4 {
  static constexpr bool kHasMinimum = true;
  static Unpacked unpack(const char* row, int64_t g) {
    const auto block = block_at<BlockP4>(row, g / 2);
    const int shift = g % 2 == 0 ? 0 : 4;
    Unpacked out{{}, half_to_float(block.scale), half_to_float(block.minimum)};
    for (int i = 0; i < 32; ++i) {
      out.codes[i] = static_cast<int16_t>((block.codes[i] >> shift) & 15);
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
void integer_dots(const char* weight, const RowGroup* groups, int64_t row_groups, int64_t count,
                  float* out, int64_t out_stride) {
  float totals[kAtOnce] = {};
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = first + kSegmentGroups < row_groups ? first + kSegmentGroups : row_groups;
    float sums[kAtOnce] = {};
    for (int64_t g = first; g < end; ++g) {
      const Unpacked weights = Format::unpack(weight, g);
      for (int64_t r = 0; r < count; ++r) {
        const RowGroup& group = groups[r * row_groups + g];
        const auto product = static_cast<float>(dot(weights.codes, group.codes));
        sums[r] = std::fmaf(product, weights.scale * group.scale, sums[r]);
        if (Format::kHasMinimum) sums[r] = std::fmaf(weights.minimum, group.sum, sums[r]);
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
  const auto* groups = reinterpret_cast<const RowGroup*>(job.activations);
  for (int64_t j = task * kTaskRows; j < (task + 1) * kTaskRows && j < args.n; ++j) {
    for (int64_t r = 0; r < args.rows; r += kAtOnce) {
      integer_dots<Format>(weight_row(job, j), groups + r * job.groups, job.groups,
                           smaller(kAtOnce, args.rows - r), args.out + r * args.n + j, args.n);
    }
  }
}

// Of a type of integer codes.
MatmulTask multiply_task(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return multiply_integer<Q4_0>;
    case DType::kQ4_1:
      return multiply_integer<Q4>;
    case DType::kQ8_0:
      return multiply_integer<Q8>;
    case DType::kQ4_K:
      return multiply_integer<Q4_K>;
    case DType::kQ6_K:
      return multiply_integer<Q6_K>;
    case DType::kP8:
      return multiply_integer<P8>;
    default:
      return multiply_integer<P4>;
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

// Task: one activation row, moved to where it is in its order.
void copy_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  std::memcpy(reinterpret_cast<float*>(job.activations) + row * job.columns,
              activation_row(job, row), static_cast<size_t>(job.columns) * sizeof(float));
}

void multiply_float(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  for (int64_t j = task * kTaskRows; j < (task + 1) * kTaskRows && j < args.n; ++j) {
    for (int64_t r = 0; r < args.rows; r += kAtOnce) {
      float_dots(args.weight_type, weight_row(job, j), job.x + r * args.k, args.k,
                 smaller(kAtOnce, args.rows - r), args.out + r * args.n + j, args.n);
    }
  }
}

MatmulWork plan(Job& job, int /*threads*/) {
  const MatmulArgs& args = *job.args;
  job.row_stride = row_bytes(args.weight_type, args.k);
  MatmulWork work{quantise_row, args.rows, multiply_float, divide_up(args.n, kTaskRows)};
  if (has_integer_codes(args.weight_type)) {
    job.groups = activation_groups(args.weight_type, args.k);
    work.multiply = multiply_task(args.weight_type);
    return work;
  }
  job.columns = args.k;
  job.x = job.sources == nullptr ? args.x : reinterpret_cast<const float*>(job.activations);
  work.prepare = copy_row;
  if (job.sources == nullptr) work.prepare_tasks = 0;
  return work;
}

void swiglu_columns(const float* gate, const float* up, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0F + std::exp(-gate[i])) * up[i];
}

constexpr ExpertKernel kExperts{ActivationLayout::kRows, plan, swiglu_columns};

}  // namespace

void matmul_exact_scalar(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactScalar, kSourceHash, args);
  if (args.rows == 0) return;
  const uint64_t bytes = scalar_matmul_scratch(args.weight_type, args.rows, args.k).total;
  Job job{};
  job.args = &args;
  job.activations = static_cast<char*>(scratch(context, bytes));
  run(context, job, plan);
}

void expert_swiglu_exact_scalar(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactScalar, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_exact_scalar(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExactScalar, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* matmul_exact_scalar_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
