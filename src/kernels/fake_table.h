// A variants table for tests: kernels that only stamp, so that what is tested is the way to them.
#pragma once

#include <array>
#include <span>
#include <string>

#include "kernels/device.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::kernels::fake {

inline constexpr const char* kHash = "feedfacecafebeef";

inline constexpr char kReference[] = "reference";
inline constexpr char kExactScalar[] = "exact_scalar";
inline constexpr char kExactAvx2[] = "exact_avx2";
inline constexpr char kFastAvx2[] = "fast_avx2";

template <typename Args, const char* kName>
void kernel(const Args& args, KernelContext& context) {
  stamp(context, kName, kHash, args);
}

// Writes over all that it declared.
template <const char* kName>
void matmul_with_scratch(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kName, kHash, args);
  const uint64_t bytes = static_cast<uint64_t>(args.rows) * 64;
  auto* memory = static_cast<unsigned char*>(scratch(context, bytes));
  for (uint64_t i = 0; i < bytes; ++i) memory[i] = 0xA5;
}

inline std::string only_q4_1(const OpCall& call) {
  return call.weight_type == DType::kQ4_1 ? "" : "weights must be q4_1";
}

inline uint64_t scratch_of_rows(const OpCall& call, const KernelParams&, int threads) {
  return static_cast<uint64_t>(call.rows) * 64 * static_cast<uint64_t>(threads);
}

// Tiles of 128 weight rows: up to 8 of them are one band.
inline KernelParams bands(const OpCall& call, const KernelParams& wanted, const Device&) {
  KernelParams params;
  if (call.n > 8 * 128) params.tile_order = wanted.tile_order;
  return params;
}

inline std::string tiling(const OpCall& call) {
  return "one band (N=" + std::to_string(call.n) + " is " + std::to_string((call.n + 127) / 128) +
         " tiles)";
}

template <typename Args>
Variant reference_row(Op op) {
  return {.op = op, .name = kReference, .function = kernel<Args, kReference>, .source_hash = kHash};
}

inline Variant matmul_row(const char* name, NumericsClass numerics, Isa isa, MatmulFn function) {
  return {.op = Op::kMatmul,
          .name = name,
          .numerics = numerics,
          .isa = isa,
          .layout = WeightLayout::kRows,
          .function = function,
          .source_hash = kHash};
}

// References of every op; matmul also exact (scalar, AVX2) and, for q4_1 alone, fast (AVX2, with
// bands and scratch).
inline std::array<Variant, 25> table() {
  Variant fast =
      matmul_row(kFastAvx2, NumericsClass::kFast, Isa::kAvx2, matmul_with_scratch<kFastAvx2>);
  fast.supports = only_q4_1;
  fast.scratch_bytes = scratch_of_rows;
  fast.effective = bands;
  fast.tiling = tiling;
  return {reference_row<EmbeddingArgs>(Op::kEmbedding),
          reference_row<RmsNormArgs>(Op::kRmsNorm),
          reference_row<MatmulArgs>(Op::kMatmul),
          reference_row<RopeArgs>(Op::kRope),
          reference_row<AttentionArgs>(Op::kAttention),
          reference_row<SwigluArgs>(Op::kSwiglu),
          reference_row<AddArgs>(Op::kAdd),
          reference_row<SampleArgs>(Op::kSample),
          reference_row<GegluArgs>(Op::kGeglu),
          reference_row<AddBiasArgs>(Op::kAddBias),
          reference_row<ScaleArgs>(Op::kScale),
          reference_row<AttentionArgs>(Op::kWindowAttention),
          reference_row<CausalConvArgs>(Op::kCausalConv),
          reference_row<GatedDeltaRuleArgs>(Op::kGatedDeltaRule),
          reference_row<GatedRmsNormArgs>(Op::kGatedRmsNorm),
          reference_row<SplitGateArgs>(Op::kSplitGate),
          reference_row<SigmoidGateArgs>(Op::kSigmoidGate),
          reference_row<GatedAddArgs>(Op::kGatedAdd),
          reference_row<ConcatArgs>(Op::kConcat),
          reference_row<RouteArgs>(Op::kRoute),
          reference_row<ExpertMatmulSwigluArgs>(Op::kExpertMatmulSwiglu),
          reference_row<ExpertMatmulCombineArgs>(Op::kExpertMatmulCombine),
          matmul_row(kExactScalar, NumericsClass::kExact, Isa::kScalar,
                     kernel<MatmulArgs, kExactScalar>),
          matmul_row(kExactAvx2, NumericsClass::kExact, Isa::kAvx2, kernel<MatmulArgs, kExactAvx2>),
          fast};
}

inline Device device(Isa best_isa) {
  Device device;
  device.name = "Test CPU";
  device.backend = "cpu";
  device.best_isa = best_isa;
  return device;
}

inline OpCall matmul_call(Phase phase, int64_t rows, int64_t n = 1536, DType type = DType::kQ4_1) {
  return {Op::kMatmul, phase, type, rows, n, 576, 0};
}

}  // namespace reckon::kernels::fake
