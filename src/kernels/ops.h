// The ops: the only thing that models call. A model writes its forward pass once as calls on Ops;
// the Dispatcher runs them (dispatch.h), the Recorder lists them for the plan (recorder.h).
//
// Shapes are a contract: a mismatch is a CHECK, because families verify every tensor at load.
// A Status fails where the plan refuses (a forced kernel that cannot run a call) and where a
// device reports an error.
// Formulas and argument meanings: kernel.h.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace reckon::kernels {

struct Rope {
  int64_t heads = 0, head_dim = 0;
  int64_t dims = 0;  // rotated, the first of each head
  double base = 10000.0;
  RopePairing pairing = RopePairing::kHalf;
};

// The norms over each head of q and k, where a family has them.
struct HeadNorms {
  const Weight* q = nullptr;
  const Weight* k = nullptr;
  float epsilon = 0;
};

// One layer's cache, [kv_heads, capacity, head_dim] each; data may be null in a dry run.
struct KvCache {
  void* keys = nullptr;
  void* values = nullptr;
  DType type = DType::kF32;  // or kF16
  int64_t kv_heads = 0, capacity = 0, head_dim = 0;
  int64_t window = 0;  // the last positions that a query sees, its own too; 0: all
};

// One layer's past inputs of a causal convolution, [ring, channels] (CausalConvArgs says how many a
// caller needs); data may be null in a dry run, as below.
struct ConvState {
  float* inputs = nullptr;
  int64_t ring = 0, channels = 0;
};

// One layer's states of the gated delta rule, [slots, value_heads, key_dim, value_dim].
struct DeltaState {
  float* states = nullptr;
  int64_t slots = 0, key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  KeyHeadOrder key_order = KeyHeadOrder::kConsecutive;
};

// What a layer's decay is made of, [value_heads] of float32 each.
struct DeltaGates {
  const Weight* a_log = nullptr;
  const Weight* dt_bias = nullptr;
};

struct Sampling {
  double temperature = 0;  // 0: greedy
  double uniform = 0;      // a random number in [0, 1), used where the temperature is above 0
};

class Ops {
 public:
  virtual ~Ops() = default;

  // table [vocabulary, width], out [tokens, width]
  virtual Status embedding(const Weight& table, std::span<const int32_t> tokens,
                           Activation out) = 0;
  // x [rows, groups * weight.k]: each group of weight.k columns is normalised on its own.
  virtual Status rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) = 0;
  // x [rows, k], weight [n, k], out [rows, n]
  virtual Status matmul(Activation x, const Weight& weight, Activation out) = 0;
  // x [rows, heads * head_dim], in place
  virtual Status rope(Activation x, const Rope& rope, int64_t first_position) = 0;
  // q, out [rows, heads * head_dim]; k, v [rows, kv_heads * head_dim]
  virtual Status attention(Activation q, Activation k, Activation v, const KvCache& cache,
                           int64_t first_position, float scale, Activation out) = 0;
  virtual Status swiglu(Activation gate, Activation up, Activation out) = 0;
  virtual Status geglu(Activation gate, Activation up, Activation out) = 0;
  virtual Status add(Activation x, Activation y, Activation out) = 0;
  virtual Status add_bias(Activation x, const Weight& bias) = 0;  // x [rows, bias.k], in place
  virtual Status scale(Activation x, float factor) = 0;           // in place
  // logits [rows, vocabulary]; one pick a row, in the backend's memory
  virtual Status sample(Activation logits, const Sampling& sampling, std::span<Pick> picks) = 0;

  // x [rows, channels], weight [channels, width] of float32, out [rows, channels] but not x
  virtual Status causal_conv(Activation x, const Weight& weight, const ConvState& state,
                             int64_t first_position, Activation out) = 0;
  // qkv [rows, 2 * key_heads * key_dim + value_heads * value_dim]; a, b [rows, value_heads];
  // out [rows, value_heads * value_dim]
  virtual Status gated_delta_rule(Activation qkv, Activation a, Activation b,
                                  const DeltaGates& gates, const DeltaState& state,
                                  int64_t first_position, Activation out) = 0;
  // x, z, out [rows, groups * weight.k], as rms_norm
  virtual Status gated_rms_norm(Activation x, Activation z, const Weight& weight, float epsilon,
                                Activation out) = 0;
  // x [rows, heads * 2 * dim]; q, gate [rows, heads * dim]
  virtual Status split_gate(Activation x, int64_t heads, Activation q, Activation gate) = 0;
  virtual Status sigmoid_gate(Activation x, Activation gate) = 0;  // of one shape; x in place
  // y, out [rows, k], gate [rows, 1]
  virtual Status gated_add(Activation y, Activation gate, Activation out) = 0;
  // out [rows, a.columns + b.columns]
  virtual Status concat(Activation a, Activation b, Activation out) = 0;
  // logits [rows, experts], selection [rows, 2 * top_k] (expert_args.h)
  virtual Status route(Activation logits, RouteWeights weights, Activation selection) = 0;
  // x [rows, k]; gate, up [experts * inner, k] of one type; out [rows * top_k, inner]
  virtual Status expert_matmul_swiglu(Activation x, Activation selection, const Weight& gate,
                                      const Weight& up, int64_t experts, Activation out) = 0;
  // x [rows * top_k, inner], down [experts * n, inner], out [rows, n]
  virtual Status expert_matmul_combine(Activation x, Activation selection, const Weight& down,
                                       int64_t experts, Activation out) = 0;

  // Compositions. Each is one kernel where the backend has one for the call and the numerics class
  // that the phase asks for, and the ops that it stands for where not.

  // add(residual, x, residual), rms_norm(residual, weight, epsilon, out)
  Status add_rms_norm(Activation x, Activation residual, const Weight& weight, float epsilon,
                      Activation out);
  // matmul(x, weights[i], outs[i]) for each; 1 to kMaxMatmulParts weights of any types
  Status matmul_group(Activation x, std::span<const Weight> weights,
                      std::span<const Activation> outs);
  // swiglu(matmul(x, gate), matmul(x, up)) into out; `other` has out's shape and is overwritten
  Status matmul_swiglu(Activation x, const Weight& gate, const Weight& up, Activation other,
                       Activation out);
  // rms_norm over each head of q and k, rope on both (rope.heads is not looked at), attention;
  // q and k are overwritten
  Status rope_attention(Activation q, Activation k, Activation v, const HeadNorms& norms,
                        const Rope& rope, const KvCache& cache, int64_t first_position, float scale,
                        Activation out);

 protected:
  // Of the calls that are being made.
  [[nodiscard]] virtual Phase phase() const = 0;
  // Whether the call is run as one kernel; then run_fused() gets its arguments.
  [[nodiscard]] virtual bool fuses(const OpCall& call) = 0;
  virtual Status run_fused(const AddRmsNormArgs& args) = 0;
  virtual Status run_fused(const MatmulGroupArgs& args) = 0;
  virtual Status run_fused(const MatmulSwigluArgs& args) = 0;
  virtual Status run_fused(const RopeAttentionArgs& args) = 0;
};

}  // namespace reckon::kernels
