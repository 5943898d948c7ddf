#include "kernels/ops.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

bool one_type(std::span<const Weight> weights) {
  return std::ranges::all_of(weights, [&](const Weight& w) { return w.type == weights[0].type; });
}

}  // namespace

Status Ops::add_rms_norm(const NormedSum& input) {
  const AddRmsNormArgs args = add_rms_norm_args(input);
  if (fuses(call_of(args, phase()))) return run_fused(args);
  TRY(add(input.residual, input.x, input.sum));
  return rms_norm(input.sum, input.weight, input.epsilon, input.normed);
}

Status Ops::matmul_group(Activation x, std::span<const Weight> weights,
                         std::span<const Activation> outs) {
  RECKON_CHECK(weights.size() == outs.size());
  if (weights.size() > 1 && one_type(weights)) {
    const MatmulGroupArgs args = matmul_group_args(x, weights, outs);
    if (fuses(call_of(args, phase()))) return run_fused(args);
  }
  for (size_t i = 0; i < weights.size(); ++i) TRY(matmul(x, weights[i], outs[i]));
  return {};
}

Status Ops::matmul_swiglu(Activation x, const Weight& gate, const Weight& up, Activation other,
                          Activation out) {
  if (gate.type == up.type) {
    const MatmulSwigluArgs args = matmul_swiglu_args(x, gate, up, out);
    if (fuses(call_of(args, phase()))) return run_fused(args);
  }
  TRY(matmul(x, gate, out));
  TRY(matmul(x, up, other));
  return swiglu(out, other, out);
}

Status Ops::add_norm_matmul_group(const NormedSum& input, std::span<const Weight> weights,
                                  std::span<const Activation> outs) {
  if (weights.size() > 1 && one_type(weights)) {
    const AddNormMatmulGroupArgs args = add_norm_matmul_group_args(input, weights, outs);
    if (fuses(call_of(args, phase()))) return run_fused(args);
  }
  TRY(add_rms_norm(input));
  return matmul_group(input.normed, weights, outs);
}

Status Ops::add_norm_matmul_swiglu(const NormedSum& input, const Weight& gate, const Weight& up,
                                   Activation other, Activation out) {
  if (gate.type == up.type) {
    const AddNormMatmulSwigluArgs args = add_norm_matmul_swiglu_args(input, gate, up, out);
    if (fuses(call_of(args, phase()))) return run_fused(args);
  }
  TRY(add_rms_norm(input));
  return matmul_swiglu(input.normed, gate, up, other, out);
}

Status Ops::rope_attention(Activation q, Activation k, Activation v, const HeadNorms& norms,
                           const Rope& rope, const KvCache& cache, int64_t first_position,
                           float scale, Activation out) {
  const RopeAttentionArgs args =
      rope_attention_args(q, k, v, norms, rope, cache, first_position, scale, out);
  if (fuses(call_of(args, phase()))) return run_fused(args);
  if (norms.q != nullptr) TRY(rms_norm(q, *norms.q, norms.epsilon, q));
  if (norms.k != nullptr) TRY(rms_norm(k, *norms.k, norms.epsilon, k));
  const auto turn = [&](Activation x, int64_t heads) {
    Rope of_heads = rope;
    of_heads.heads = heads;
    return this->rope(x, of_heads, first_position);
  };
  TRY(turn(q, args.attention.heads));
  TRY(turn(k, args.attention.kv_heads));
  return attention(q, k, v, cache, first_position, scale, out);
}

}  // namespace reckon::kernels
