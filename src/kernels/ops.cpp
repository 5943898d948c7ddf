#include "kernels/ops.h"

#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {

Status Ops::add_rms_norm(Activation x, Activation residual, const Weight& weight, float epsilon,
                         Activation out) {
  const AddRmsNormArgs args = add_rms_norm_args(x, residual, weight, epsilon, out);
  if (fuses(call_of(args, phase()))) return run_fused(args);
  TRY(add(residual, x, residual));
  return rms_norm(residual, weight, epsilon, out);
}

Status Ops::matmul_group(Activation x, std::span<const Weight> weights,
                         std::span<const Activation> outs) {
  RECKON_CHECK(weights.size() == outs.size());
  bool one_type = weights.size() > 1;
  for (const Weight& weight : weights) one_type = one_type && weight.type == weights[0].type;
  if (one_type) {
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

Status Ops::rope_attention(Activation q, Activation k, Activation v, const HeadNorms& norms,
                           const Rope& rope, const KvCache& cache, int64_t first_position,
                           float scale, Activation out) {
  const RopeAttentionArgs args =
      rope_attention_args(q, k, v, norms, rope, cache, first_position, scale, out);
  // No kernel of this composition looks at a window.
  if (cache.window == 0 && fuses(call_of(args, phase()))) return run_fused(args);
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
