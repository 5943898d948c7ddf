// The vocabulary of the plan and the trace: ops, phases, numerics classes and the shape of a call.
//
// Plain types only: this header is included by files compiled for one instruction set.
#pragma once

#include <cstdint>

namespace reckon {

enum class DType : uint8_t;

namespace kernels {

// The last four are compositions of others that a backend may run as one kernel (ops.h).
enum class Op : uint8_t {
  kEmbedding,
  kRmsNorm,
  kMatmul,
  kRope,
  kAttention,
  kSwiglu,
  kAdd,
  kSample,
  kGeglu,
  kAddBias,
  kScale,
  kWindowAttention,
  kCausalConv,
  kGatedDeltaRule,
  kGatedRmsNorm,
  kSplitGate,
  kSigmoidGate,
  kGatedAdd,
  kConcat,
  kRoute,
  kExpertMatmulSwiglu,
  kExpertMatmulCombine,
  kAddRmsNorm,
  kMatmulGroup,
  kMatmulSwiglu,
  kRopeAttention,
};
inline constexpr int kOpCount = 26;
constexpr bool is_composition(Op op) {
  return op >= Op::kAddRmsNorm;
}

// What the forward pass is doing. Verify (several drafted rows in one pass) is decided like decode.
enum class Phase : uint8_t { kPrefill, kDecode, kVerify };
inline constexpr int kPhaseCount = 3;

// What a variant promises (docs/numerics.md). Ordered from strict to loose.
enum class NumericsClass : uint8_t { kReference, kExact, kFast };

// Each has what stands before it. kAvx512: F, BW, VL, VNNI; kAmx: tiles of int8 and bfloat16, and
// AVX-512 BF16.
enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kAmx };

// How a variant expects its weights in memory.
enum class WeightLayout : uint8_t {
  kNone,
  kRows,    // the file's own rows (tensor/dtype.h)
  kPanels,  // 16 rows side by side (kernels/panels.h)
  kTiles,   // a GPU's tiles (cuda/weight_tiles.h)
};

// The order in which a matmul walks its tiles: all token tiles of one weight-row tile first, or
// bands of 8 weight-row tiles across all token tiles.
enum class TileOrder : uint8_t { kRow, kBand8 };

// What a tile covers, as weight rows × tokens: more weight rows than tokens, more tokens than
// weight rows, or as many.
enum class TileShape : uint8_t { kAuto, kTall, kWide, kSquare };

// What a kernel was told beyond its arguments. Always the effective values: a parameter that makes
// no difference for a shape is set back to its default by the plan.
struct KernelParams {
  TileOrder tile_order = TileOrder::kRow;
  TileShape tile = TileShape::kAuto;
  int32_t expert_tile = 32;  // rows of an expert that share a pass over its weights: 16, 32 or 64
  bool skip_empty = true;    // of an expert tile, blocks of 8 rows that no row of the expert fills
  bool graph = false;        // replayed as part of a captured step (decode.graph)

  friend bool operator==(const KernelParams&, const KernelParams&) = default;
};

// One call as the plan and the trace see it. Meaning of the dimensions by op:
//   embedding  rows tokens from a table [n = vocabulary, k = width]
//   rms_norm   rows vectors of width k (a token's heads count as vectors; n = 0)
//   matmul     rows x k activations times a weight [n, k]
//   rope       rows tokens of n heads of width k
//   attention  rows tokens of n query heads of width k over groups KV heads
//   swiglu     rows x k
//   add        rows x k
//   sample     rows of n logits
//   geglu, add_bias, scale  rows x k
//   window_attention  as attention, of `window` positions
//   causal_conv       rows x k channels, groups positions wide
//   gated_delta_rule  rows of n value heads of width m, over groups key heads of width k
//   gated_rms_norm    as rms_norm
//   split_gate        rows of n heads of width k
//   sigmoid_gate, gated_add  rows x k
//   concat            rows of n and of k columns
//   route             rows of n experts, m of them selected
//   expert_matmul_swiglu, expert_matmul_combine
//                     rows tokens, each to m of groups experts with weights [n, k]
//   add_rms_norm    rows x k
//   matmul_group    rows x k activations times groups weights with n rows in all
//   matmul_swiglu   rows x k activations times two weights [n, k]
//   rope_attention  as attention
// The weight type of attention is the type of the cache; f32 where an op has no weight.
struct OpCall {
  Op op = Op::kMatmul;
  Phase phase = Phase::kPrefill;
  DType weight_type = static_cast<DType>(0);
  int64_t rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t groups = 0;
  int64_t window = 0;
  bool in_panels = false;  // of a matmul: whether its weight is laid out in panels, too
  int64_t m = 0;
  bool panels_alone = false;  // and not in rows

  friend bool operator==(const OpCall&, const OpCall&) = default;
};

}  // namespace kernels
}  // namespace reckon
