#include "kernels/call.h"

#include "base/check.h"

namespace reckon::kernels {
namespace {

bool same_shape(const Activation& a, const Activation& b) {
  return a.rows == b.rows && a.columns == b.columns;
}

}  // namespace

EmbeddingArgs embedding_args(const Weight& table, std::span<const int32_t> tokens, Activation out) {
  RECKON_CHECK(out.rows == static_cast<int64_t>(tokens.size()) && out.columns == table.k);
  return {.table = table.data,
          .weight_type = table.type,
          .tokens = tokens.data(),
          .out = out.data,
          .rows = out.rows,
          .n = table.n,
          .k = table.k};
}

RmsNormArgs rms_norm_args(Activation x, const Weight& weight, float epsilon, Activation out) {
  RECKON_CHECK(weight.type == DType::kF32 && weight.n == 1 && weight.k > 0);
  RECKON_CHECK(same_shape(x, out) && x.columns % weight.k == 0);
  return {.x = x.data,
          .weight = static_cast<const float*>(weight.data),
          .out = out.data,
          .rows = x.rows * (x.columns / weight.k),
          .k = weight.k,
          .epsilon = epsilon};
}

MatmulArgs matmul_args(Activation x, const Weight& weight, Activation out) {
  RECKON_CHECK(x.rows == out.rows && x.columns == weight.k && out.columns == weight.n);
  return {.x = x.data,
          .weight = weight.data,
          .weight_type = weight.type,
          .out = out.data,
          .rows = x.rows,
          .n = weight.n,
          .k = weight.k,
          .params = {},
          .in_panels = weight.in_panels,
          .panels_alone = weight.panels_alone,
          .panels = weight.panels};
}

RopeArgs rope_args(Activation x, const Rope& rope, int64_t first_position) {
  RECKON_CHECK(x.columns == rope.heads * rope.head_dim && first_position >= 0);
  RECKON_CHECK(rope.dims >= 0 && rope.dims <= rope.head_dim && rope.dims % 2 == 0);
  return {.x = x.data,
          .rows = x.rows,
          .heads = rope.heads,
          .head_dim = rope.head_dim,
          .dims = rope.dims,
          .first_position = first_position,
          .base = rope.base,
          .pairing = rope.pairing};
}

AttentionArgs attention_args(Activation q, Activation k, Activation v, const KvCache& cache,
                             int64_t first_position, float scale, Activation out) {
  RECKON_CHECK(cache.kv_heads > 0 && cache.head_dim > 0 && q.columns % cache.head_dim == 0);
  const int64_t heads = q.columns / cache.head_dim;
  RECKON_CHECK(heads % cache.kv_heads == 0 && same_shape(q, out));
  RECKON_CHECK(k.columns == cache.kv_heads * cache.head_dim && k.rows == q.rows);
  RECKON_CHECK(same_shape(k, v));
  RECKON_CHECK(first_position >= 0 && first_position <= cache.capacity - q.rows);
  RECKON_CHECK(cache.window >= 0);
  return {.q = q.data,
          .k = k.data,
          .v = v.data,
          .cache_k = cache.keys,
          .cache_v = cache.values,
          .kv_type = cache.type,
          .out = out.data,
          .rows = q.rows,
          .heads = heads,
          .kv_heads = cache.kv_heads,
          .head_dim = cache.head_dim,
          .capacity = cache.capacity,
          .first_position = first_position,
          .scale = scale,
          .window = cache.window};
}

SwigluArgs swiglu_args(Activation gate, Activation up, Activation out) {
  RECKON_CHECK(same_shape(gate, up) && same_shape(gate, out));
  return {.gate = gate.data, .up = up.data, .out = out.data, .rows = gate.rows, .k = gate.columns};
}

GegluArgs geglu_args(Activation gate, Activation up, Activation out) {
  RECKON_CHECK(same_shape(gate, up) && same_shape(gate, out));
  return {.gate = gate.data, .up = up.data, .out = out.data, .rows = gate.rows, .k = gate.columns};
}

AddBiasArgs add_bias_args(Activation x, const Weight& bias) {
  RECKON_CHECK(bias.type == DType::kF32 && bias.n == 1 && bias.k == x.columns);
  return {
      .x = x.data, .bias = static_cast<const float*>(bias.data), .rows = x.rows, .k = x.columns};
}

ScaleArgs scale_args(Activation x, float factor) {
  return {.x = x.data, .rows = x.rows, .k = x.columns, .factor = factor};
}

AddArgs add_args(Activation x, Activation y, Activation out) {
  RECKON_CHECK(same_shape(x, y) && same_shape(x, out));
  return {.x = x.data, .y = y.data, .out = out.data, .rows = x.rows, .k = x.columns};
}

SampleArgs sample_args(Activation logits, const Sampling& sampling, std::span<Pick> picks) {
  RECKON_CHECK(logits.rows == static_cast<int64_t>(picks.size()) && logits.columns > 0);
  RECKON_CHECK(sampling.temperature >= 0 && sampling.uniform >= 0 && sampling.uniform < 1);
  return {.logits = logits.data,
          .picks = picks.data(),
          .rows = logits.rows,
          .n = logits.columns,
          .temperature = sampling.temperature,
          .uniform = sampling.uniform};
}

AddRmsNormArgs add_rms_norm_args(Activation x, Activation residual, const Weight& weight,
                                 float epsilon, Activation out) {
  RECKON_CHECK(weight.type == DType::kF32 && weight.n == 1 && weight.k == x.columns);
  RECKON_CHECK(same_shape(x, residual) && same_shape(x, out));
  return {.x = x.data,
          .residual = residual.data,
          .weight = static_cast<const float*>(weight.data),
          .out = out.data,
          .rows = x.rows,
          .k = x.columns,
          .epsilon = epsilon};
}

MatmulGroupArgs matmul_group_args(Activation x, std::span<const Weight> weights,
                                  std::span<const Activation> outs) {
  RECKON_CHECK(weights.size() >= 2 && weights.size() <= kMaxMatmulParts);
  RECKON_CHECK(weights.size() == outs.size());
  MatmulGroupArgs args{.x = x.data,
                       .parts = {},
                       .count = static_cast<int>(weights.size()),
                       .weight_type = weights[0].type,
                       .rows = x.rows,
                       .k = x.columns,
                       .params = {}};
  for (size_t i = 0; i < weights.size(); ++i) {
    RECKON_CHECK(weights[i].type == args.weight_type && weights[i].k == args.k);
    RECKON_CHECK(outs[i].rows == args.rows && outs[i].columns == weights[i].n);
    args.parts[i] = {weights[i].data, outs[i].data, weights[i].n};
  }
  return args;
}

MatmulSwigluArgs matmul_swiglu_args(Activation x, const Weight& gate, const Weight& up,
                                    Activation out) {
  RECKON_CHECK(gate.type == up.type && gate.n == up.n && gate.k == up.k);
  RECKON_CHECK(x.rows == out.rows && x.columns == gate.k && out.columns == gate.n);
  return {.x = x.data,
          .gate = gate.data,
          .up = up.data,
          .weight_type = gate.type,
          .out = out.data,
          .rows = x.rows,
          .n = gate.n,
          .k = gate.k,
          .params = {}};
}

RopeAttentionArgs rope_attention_args(Activation q, Activation k, Activation v,
                                      const HeadNorms& norms, const Rope& rope,
                                      const KvCache& cache, int64_t first_position, float scale,
                                      Activation out) {
  const auto norm_weight = [&](const Weight* weight) -> const float* {
    if (weight == nullptr) return nullptr;
    RECKON_CHECK(weight->type == DType::kF32 && weight->n == 1 && weight->k == cache.head_dim);
    return static_cast<const float*>(weight->data);
  };
  RECKON_CHECK(rope.head_dim == cache.head_dim && rope.dims <= rope.head_dim && rope.dims % 2 == 0);
  return {.attention = attention_args(q, k, v, cache, first_position, scale, out),
          .q_norm = norm_weight(norms.q),
          .k_norm = norm_weight(norms.k),
          .epsilon = norms.epsilon,
          .rope_dims = rope.dims,
          .rope_base = rope.base,
          .pairing = rope.pairing};
}

OpCall call_of(const EmbeddingArgs& args, Phase phase) {
  return {Op::kEmbedding, phase, args.weight_type, args.rows, args.n, args.k, 0};
}

OpCall call_of(const RmsNormArgs& args, Phase phase) {
  return {Op::kRmsNorm, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const MatmulArgs& args, Phase phase) {
  OpCall call{Op::kMatmul, phase, args.weight_type, args.rows, args.n, args.k};
  call.in_panels = args.in_panels;
  call.panels_alone = args.panels_alone;
  return call;
}

OpCall call_of(const RopeArgs& args, Phase phase) {
  return {Op::kRope, phase, DType::kF32, args.rows, args.heads, args.head_dim, 0};
}

OpCall call_of(const AttentionArgs& args, Phase phase) {
  const Op op = args.window > 0 ? Op::kWindowAttention : Op::kAttention;
  return {op,         phase,         args.kv_type,  args.rows,
          args.heads, args.head_dim, args.kv_heads, args.window};
}

OpCall call_of(const SwigluArgs& args, Phase phase) {
  return {Op::kSwiglu, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const GegluArgs& args, Phase phase) {
  return {Op::kGeglu, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const AddBiasArgs& args, Phase phase) {
  return {Op::kAddBias, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const ScaleArgs& args, Phase phase) {
  return {Op::kScale, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const AddArgs& args, Phase phase) {
  return {Op::kAdd, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const SampleArgs& args, Phase phase) {
  return {Op::kSample, phase, DType::kF32, args.rows, args.n, 0, 0};
}

OpCall call_of(const AddRmsNormArgs& args, Phase phase) {
  return {Op::kAddRmsNorm, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const MatmulGroupArgs& args, Phase phase) {
  int64_t n = 0;
  for (int i = 0; i < args.count; ++i) n += args.parts[i].n;
  return {Op::kMatmulGroup, phase, args.weight_type, args.rows, n, args.k, args.count};
}

OpCall call_of(const MatmulSwigluArgs& args, Phase phase) {
  return {Op::kMatmulSwiglu, phase, args.weight_type, args.rows, args.n, args.k, 0};
}

OpCall call_of(const RopeAttentionArgs& args, Phase phase) {
  OpCall call = call_of(args.attention, phase);
  call.op = Op::kRopeAttention;
  return call;
}

uint64_t call_hash(const OpCall& call) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio (Knuth, TAOCP 6.4)
  uint64_t hash = static_cast<uint64_t>(call.op) | static_cast<uint64_t>(call.phase) << 8 |
                  static_cast<uint64_t>(call.weight_type) << 16 |
                  static_cast<uint64_t>(call.in_panels) << 24 |
                  static_cast<uint64_t>(call.panels_alone) << 25;
  for (const int64_t dimension : {call.rows, call.n, call.k, call.groups, call.window, call.m}) {
    hash = (hash ^ static_cast<uint64_t>(dimension)) * kMultiplier;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace reckon::kernels
