#include "kernels/reference/variants.h"

#include "kernels/reference/kernels.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

std::string supports_attention(const OpCall& call) {
  if (call.weight_type != DType::kF32) {
    return "a cache of " + std::string(dtype_name(call.weight_type)) + "; it reads f32";
  }
  if (call.groups < 1 || call.n % call.groups != 0) {
    return std::to_string(call.n) + " query heads do not divide into " +
           std::to_string(call.groups) + " groups";
  }
  return "";
}

uint64_t matmul_scratch(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return reference::matmul_scratch_bytes(call.rows, call.k, threads);
}

template <int64_t kMatrices>
uint64_t expert_scratch(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return reference::expert_scratch_bytes(kMatrices, call.k, threads);
}

Variant row(Op op, KernelFn function, const char* source_hash) {
  Variant variant;
  variant.op = op;
  variant.name = reference::kName;
  variant.numerics = NumericsClass::kReference;
  variant.isa = Isa::kScalar;
  variant.function = function;
  variant.source_hash = source_hash;
  return variant;
}

Variant weight_row(Op op, KernelFn function, const char* source_hash) {
  Variant variant = row(op, function, source_hash);
  variant.layout = WeightLayout::kRows;
  variant.supports = supports_weight_rows;
  return variant;
}

std::vector<Variant> make_table() {
  Variant matmul = weight_row(Op::kMatmul, reference::matmul, reference::matmul_hash());
  matmul.scratch_bytes = matmul_scratch;
  Variant attention = row(Op::kAttention, reference::attention, reference::attention_hash());
  attention.supports = supports_attention;
  Variant window = attention;
  window.op = Op::kWindowAttention;
  Variant swiglu = weight_row(Op::kExpertMatmulSwiglu, reference::expert_matmul_swiglu,
                              reference::expert_matmul_hash());
  swiglu.scratch_bytes = expert_scratch<2>;
  Variant combine = weight_row(Op::kExpertMatmulCombine, reference::expert_matmul_combine,
                               reference::expert_matmul_hash());
  combine.scratch_bytes = expert_scratch<1>;
  return {weight_row(Op::kEmbedding, reference::embedding, reference::embedding_hash()),
          row(Op::kRmsNorm, reference::rms_norm, reference::rms_norm_hash()),
          matmul,
          row(Op::kRope, reference::rope, reference::rope_hash()),
          attention,
          row(Op::kSwiglu, reference::swiglu, reference::swiglu_hash()),
          row(Op::kAdd, reference::add, reference::add_hash()),
          row(Op::kSample, reference::sample, reference::sample_hash()),
          row(Op::kGeglu, reference::geglu, reference::geglu_hash()),
          row(Op::kAddBias, reference::add_bias, reference::add_bias_hash()),
          row(Op::kScale, reference::scale, reference::scale_hash()),
          window,
          row(Op::kCausalConv, reference::causal_conv, reference::causal_conv_hash()),
          row(Op::kGatedDeltaRule, reference::gated_delta_rule, reference::gated_delta_rule_hash()),
          row(Op::kGatedRmsNorm, reference::gated_rms_norm, reference::gated_rms_norm_hash()),
          row(Op::kSplitGate, reference::split_gate, reference::split_gate_hash()),
          row(Op::kSigmoidGate, reference::sigmoid_gate, reference::sigmoid_gate_hash()),
          row(Op::kGatedAdd, reference::gated_add, reference::gated_add_hash()),
          row(Op::kConcat, reference::concat, reference::concat_hash()),
          row(Op::kRoute, reference::route, reference::route_hash()),
          swiglu,
          combine};
}

}  // namespace

std::span<const Variant> reference_variants() {
  static const std::vector<Variant> table = make_table();
  return table;
}

std::string supports_weight_rows(const OpCall& call) {
  if (call.weight_type == DType::kI32) return "weights of type i32 have no arithmetic";
  const int64_t block = block_elements(call.weight_type);
  if (call.k % block != 0 && !pads_rows(call.weight_type)) {
    return "k = " + std::to_string(call.k) + " is not a multiple of the block of " +
           std::string(dtype_name(call.weight_type)) + " (" + std::to_string(block) + ")";
  }
  return "";
}

}  // namespace reckon::kernels
