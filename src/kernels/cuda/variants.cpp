// The table of CUDA variants. References first, then exact, then fast; within a class the plan
// takes the highest preference.
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding_tiles.h"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/gates.h"
#include "kernels/cuda/matmul_exact.h"
#include "kernels/cuda/matmul_fast_cublas.h"
#include "kernels/cuda/matmul_fast_tile.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/reference.h"
#include "kernels/cuda/sample.h"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kReference = "reference";
constexpr const char* kExact = "exact_cuda";

Variant row(Op op, const char* name, NumericsClass numerics, KernelFn function,
            const char* source_hash) {
  Variant variant;
  variant.op = op;
  variant.name = name;
  variant.numerics = numerics;
  variant.function = function;
  variant.source_hash = source_hash;
  return variant;
}

Variant reference_row(Op op, KernelFn function, const char* source_hash) {
  return row(op, kReference, NumericsClass::kReference, function, source_hash);
}

Variant exact_row(Op op, KernelFn function, const char* source_hash) {
  return row(op, kExact, NumericsClass::kExact, function, source_hash);
}

Variant weights_row(Op op, const char* name, NumericsClass numerics, KernelFn function,
                    const char* source_hash, std::string (*supports)(const OpCall&)) {
  Variant variant = row(op, name, numerics, function, source_hash);
  variant.layout = WeightLayout::kTiles;
  variant.supports = supports;
  return variant;
}

constexpr int kWarpgroups = 90;  // the compute capability whose warpgroup instructions some use

int preferred(const OpCall& /*call*/) {
  return 1;
}

uint64_t sample_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return sample_scratch_bytes(call.rows, call.n);
}

uint64_t attention_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return attention_scratch_bytes(call.rows, call.n, call.k);
}

void add_references(std::vector<Variant>& table) {
  table.push_back(weights_row(Op::kEmbedding, kReference, NumericsClass::kReference,
                              embedding_tiles_reference, embedding_tiles_reference_hash(),
                              supports_exact_simt));
  table.push_back(reference_row(Op::kRmsNorm, rms_norm_reference, rms_norm_reference_hash()));
  table.push_back(weights_row(Op::kMatmul, kReference, NumericsClass::kReference, matmul_reference,
                              matmul_exact_hash(), supports_exact_simt));
  table.push_back(reference_row(Op::kRope, rope_reference, rope_reference_hash()));
  table.push_back(reference_row(Op::kAttention, attention_reference, attention_reference_hash()));
  table.push_back(reference_row(Op::kSwiglu, swiglu_reference, swiglu_reference_hash()));
  table.push_back(reference_row(Op::kAdd, add_reference, add_reference_hash()));
  table.push_back(reference_row(Op::kSample, sample_reference, sample_reference_hash()));
  const auto recurrent = [&](Op op, KernelFn function) {
    table.push_back(reference_row(op, function, recurrent_reference_hash()));
  };
  recurrent(Op::kCausalConv, causal_conv_reference);
  recurrent(Op::kGatedDeltaRule, gated_delta_rule_reference);
  recurrent(Op::kGatedRmsNorm, gated_rms_norm_reference);
  recurrent(Op::kSplitGate, split_gate_reference);
  recurrent(Op::kSigmoidGate, sigmoid_gate_reference);
  recurrent(Op::kGatedAdd, gated_add_reference);
  recurrent(Op::kConcat, concat_reference);
  table.push_back(reference_row(Op::kRoute, route_reference, route_reference_hash()));
}

void add_recurrent(std::vector<Variant>& table) {
  table.push_back(exact_row(Op::kCausalConv, causal_conv_exact, causal_conv_exact_hash()));
  table.push_back(
      exact_row(Op::kGatedDeltaRule, gated_delta_rule_exact, gated_delta_rule_exact_hash()));
  table.back().supports = supports_gated_delta_rule;
  table.push_back(exact_row(Op::kGatedRmsNorm, gated_rms_norm_exact, gated_rms_norm_exact_hash()));
  table.push_back(exact_row(Op::kSplitGate, split_gate_exact, gates_exact_hash()));
  table.push_back(exact_row(Op::kSigmoidGate, sigmoid_gate_exact, sigmoid_gate_exact_hash()));
  table.push_back(exact_row(Op::kGatedAdd, gated_add_exact, gates_exact_hash()));
  table.push_back(exact_row(Op::kConcat, concat_exact, gates_exact_hash()));
}

void add_experts(std::vector<Variant>& table) {
  table.push_back(exact_row(Op::kRoute, route_exact, route_exact_hash()));
  const auto simt = [&](Op op, const char* name, NumericsClass numerics, KernelFn function) {
    table.push_back(
        weights_row(op, name, numerics, function, experts_simt_hash(), supports_experts_simt));
    table.back().scratch_bytes = experts_simt_scratch_bytes;
  };
  const auto mma = [&](Op op, KernelFn function) {
    table.push_back(weights_row(op, kExpertsMma, NumericsClass::kExact, function,
                                experts_mma_hash(), supports_experts_mma));
    table.back().scratch_bytes = experts_mma_scratch_bytes;
    table.back().preference = preferred;
  };
  const auto both = [&](const char* name, NumericsClass numerics, KernelFn swiglu,
                        KernelFn combine) {
    simt(Op::kExpertMatmulSwiglu, name, numerics, swiglu);
    simt(Op::kExpertMatmulCombine, name, numerics, combine);
  };
  both(kReference, NumericsClass::kReference, expert_matmul_swiglu_reference,
       expert_matmul_combine_reference);
  both(kExpertsSimt, NumericsClass::kExact, expert_matmul_swiglu_exact_simt,
       expert_matmul_combine_exact_simt);
  mma(Op::kExpertMatmulSwiglu, expert_matmul_swiglu_exact_mma);
  mma(Op::kExpertMatmulCombine, expert_matmul_combine_exact_mma);
}

void add_exact_matmuls(std::vector<Variant>& table) {
  table.push_back(weights_row(Op::kMatmul, kExactSimt, NumericsClass::kExact, matmul_exact_simt,
                              matmul_exact_hash(), supports_exact_simt));
  const auto mma = [&](Op op, KernelFn function) {
    Variant variant = weights_row(op, kExactMma, NumericsClass::kExact, function,
                                  matmul_exact_hash(), supports_exact_mma);
    variant.preference = preferred;
    table.push_back(variant);
  };
  mma(Op::kMatmul, matmul_exact_mma);
  mma(Op::kMatmulGroup, matmul_group_exact_mma);
  mma(Op::kMatmulSwiglu, matmul_swiglu_exact_mma);
}

void add_attentions(std::vector<Variant>& table, int capability) {
  const auto attention = [&](Op op, const char* name, NumericsClass numerics, KernelFn function,
                             const char* hash, std::string (*supports)(const OpCall&)) -> Variant& {
    table.push_back(row(op, name, numerics, function, hash));
    table.back().supports = supports;
    return table.back();
  };
  for (const Op op : {Op::kAttention, Op::kRopeAttention}) {
    const bool fused = op == Op::kRopeAttention;
    attention(op, "exact_simt", NumericsClass::kExact,
              fused ? KernelFn(rope_attention_exact_simt) : KernelFn(attention_exact_simt),
              attention_exact_simt_hash(), attention_exact_simt_supports);
    attention(op, "exact_mma", NumericsClass::kExact,
              fused ? KernelFn(rope_attention_exact_mma) : KernelFn(attention_exact_mma),
              attention_exact_mma_hash(), attention_exact_mma_supports)
        .scratch_bytes = attention_bytes;
    attention(op, "fast_mma", NumericsClass::kFast,
              fused ? KernelFn(rope_attention_fast_mma) : KernelFn(attention_fast_mma),
              attention_fast_mma_hash(), attention_fast_mma_supports);
    if (capability < kWarpgroups) continue;
    attention(op, "fast_wgmma", NumericsClass::kFast,
              fused ? KernelFn(rope_attention_fast_wgmma) : KernelFn(attention_fast_wgmma),
              attention_fast_wgmma_hash(), attention_fast_wgmma_supports)
        .preference = preferred;
  }
}

void add_fast_matmuls(std::vector<Variant>& table) {
  const auto fast = [&](Op op, const char* name, KernelFn function, const char* hash,
                        std::string (*supports)(const OpCall&),
                        uint64_t (*bytes)(const OpCall&, const KernelParams&, int),
                        int (*preference)(const OpCall&)) {
    Variant variant = weights_row(op, name, NumericsClass::kFast, function, hash, supports);
    variant.scratch_bytes = bytes;
    variant.preference = preference;
    table.push_back(variant);
  };
  const auto cublas = [&](Op op, KernelFn function) {
    fast(op, kFastCublas, function, matmul_fast_cublas_hash(), supports_fast_cublas,
         fast_cublas_scratch_bytes, fast_cublas_preference);
  };
  cublas(Op::kMatmul, matmul_fast_cublas);
  cublas(Op::kMatmulGroup, matmul_group_fast_cublas);
  cublas(Op::kMatmulSwiglu, matmul_swiglu_fast_cublas);
  const auto tile = [&](Op op, KernelFn function) {
    fast(op, kFastTile, function, matmul_fast_tile_hash(), supports_fast_tile,
         fast_tile_scratch_bytes, fast_tile_preference);
    table.back().effective = fast_tile_effective;
  };
  tile(Op::kMatmul, matmul_fast_tile);
  tile(Op::kMatmulGroup, matmul_group_fast_tile);
  tile(Op::kMatmulSwiglu, matmul_swiglu_fast_tile);
}

std::vector<Variant> make_table(int capability) {
  std::vector<Variant> table;
  add_references(table);
  table.push_back(weights_row(Op::kEmbedding, kExact, NumericsClass::kExact, embedding_tiles_exact,
                              embedding_tiles_exact_hash(), supports_exact_simt));
  table.push_back(exact_row(Op::kRmsNorm, rms_norm_exact, rms_norm_exact_hash()));
  table.push_back(exact_row(Op::kAddRmsNorm, add_rms_norm_exact, add_rms_norm_exact_hash()));
  table.push_back(exact_row(Op::kRope, rope_exact, rope_exact_hash()));
  table.push_back(exact_row(Op::kSwiglu, swiglu_exact, swiglu_exact_hash()));
  table.push_back(exact_row(Op::kAdd, add_exact, add_exact_hash()));
  table.push_back(exact_row(Op::kSample, sample_exact, sample_exact_hash()));
  table.back().scratch_bytes = sample_bytes;
  add_recurrent(table);
  add_experts(table);
  add_exact_matmuls(table);
  add_attentions(table, capability);
  add_fast_matmuls(table);
  return table;
}

}  // namespace

std::vector<Variant> variants_for(int capability) {
  return make_table(capability);
}

std::span<const Variant> variants() {
  static const std::vector<Variant> table = make_table(kWarpgroups);
  return table;
}

}  // namespace reckon::kernels::cuda
