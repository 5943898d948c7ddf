// What a kernel variant is: a plain function of plain arguments and a context. The argument
// structs, those of recurrent_args.h and expert_args.h included, are the contract of each op;
// `reference/` says the same in loops.
//
// Plain types only: included by files compiled for one instruction set, which must not pull inline
// functions of the standard library into their object code.
//
// Rules for every variant:
//  - its first act is stamp(context, kName, kSourceHash, args): the trace must see what ran;
//  - it writes only `out` (and, for ops with a cache or a state, what its own tokens put there);
//  - it takes no memory but scratch(), which the variants table declares;
//  - each output row depends on its own inputs only, never on the thread count.
#pragma once

#include <cstdint>

#include "kernels/expert_args.h"
#include "kernels/op.h"
#include "kernels/recurrent_args.h"

namespace reckon::kernels {

struct KernelContext;  // threads, scratch and trace of the running session

// Runs task(argument, i, thread) for i in [0, tasks) on the session's threads and waits.
void parallel_for(KernelContext& context, int64_t tasks,
                  void (*task)(void* argument, int64_t i, int thread), void* argument);
int thread_count(const KernelContext& context);
// The call's scratch, 64-byte aligned, at least the bytes that the variant declared for the call;
// undefined content, valid until the variant returns. `bytes` over the declared ones is a CHECK.
void* scratch(KernelContext& context, uint64_t bytes);
// What the backend gives its kernels beyond this (cuda/queue.h); null on the CPU.
void* backend_queue(KernelContext& context);
// The call could not be run: the dispatcher reports `message` with the op and the variant. For
// errors of a device's driver; never for arguments, which are checked before.
void fail(KernelContext& context, const char* message);

// out[r, :] = table[tokens[r], :] as float32. Tokens are in [0, n).
struct EmbeddingArgs {
  const void* table = nullptr;  // [n, k] of weight_type
  DType weight_type = static_cast<DType>(0);
  const int32_t* tokens = nullptr;
  float* out = nullptr;  // [rows, k]
  int64_t rows = 0, n = 0, k = 0;
};

// out[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + epsilon) * weight. In place allowed (out == x).
// Zhang & Sennrich 2019, arXiv:1910.07467.
struct RmsNormArgs {
  const float* x = nullptr;       // [rows, k]
  const float* weight = nullptr;  // [k]
  float* out = nullptr;           // [rows, k]
  int64_t rows = 0, k = 0;
  float epsilon = 0;
};

// out[r, j] = sum over i of x[r, i] * weight[j, i].
struct MatmulArgs {
  const float* x = nullptr;      // [rows, k]
  const void* weight = nullptr;  // [n, k] of weight_type
  DType weight_type = static_cast<DType>(0);
  float* out = nullptr;  // [rows, n]
  int64_t rows = 0, n = 0, k = 0;
  KernelParams params;
  bool in_panels = false;
  bool panels_alone = false;     // the weight's rows are not kept
  const void* panels = nullptr;  // of the weight (kernels/panels.h), where the variant reads them
};

// Which two elements of a head are rotated together (Su et al. 2021, arXiv:2104.09864).
enum class RopePairing : uint8_t {
  kHalf,      // (i, i + d/2): Hugging Face checkpoints, most GGUF families
  kAdjacent,  // (2i, 2i + 1): GGUF `llama`, whose Q and K rows are permuted
};

// Rotates the first `dims` of each head of x in place; row r stands at position first_position + r.
// Pair i turns by position * base^(-2i / dims).
struct RopeArgs {
  float* x = nullptr;  // [rows, heads, head_dim]
  int64_t rows = 0, heads = 0, head_dim = 0, dims = 0;
  int64_t first_position = 0;
  double base = 10000.0;
  RopePairing pairing = RopePairing::kHalf;
};

// Causal grouped-query attention over a cache. First stores the rows' keys and values at positions
// first_position + r, then out[r, h, :] = softmax(scale * q[r, h] . keys) . values over positions
// 0 ... first_position + r of KV head h / (heads / kv_heads); with a window, over the last `window`
// of them (op window_attention).
struct AttentionArgs {
  const float* q = nullptr;               // [rows, heads, head_dim]
  const float* k = nullptr;               // [rows, kv_heads, head_dim]
  const float* v = nullptr;               // [rows, kv_heads, head_dim]
  void* cache_k = nullptr;                // [kv_heads, capacity, head_dim] of kv_type
  void* cache_v = nullptr;                // [kv_heads, capacity, head_dim] of kv_type
  DType kv_type = static_cast<DType>(0);  // f32 or f16; rounded to nearest even when stored
  float* out = nullptr;                   // [rows, heads, head_dim]
  int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0, capacity = 0;
  int64_t first_position = 0;
  float scale = 1;
  int64_t window = 0;  // 0: all positions
};

// out = gate * sigmoid(gate) * up, element by element. In place allowed.
struct SwigluArgs {
  const float* gate = nullptr;  // [rows, k]
  const float* up = nullptr;    // [rows, k]
  float* out = nullptr;         // [rows, k]
  int64_t rows = 0, k = 0;
};

// out = gelu(gate) * up, element by element, gelu(g) = g / 2 (1 + tanh(sqrt(2/pi) (g + 0.044715
// g^3))) (Hendrycks & Gimpel 2016, arXiv:1606.08415; Shazeer 2020, arXiv:2002.05202). In place
// allowed.
struct GegluArgs {
  const float* gate = nullptr;  // [rows, k]
  const float* up = nullptr;    // [rows, k]
  float* out = nullptr;         // [rows, k]
  int64_t rows = 0, k = 0;
};

// x[r, :] += bias, in place.
struct AddBiasArgs {
  float* x = nullptr;           // [rows, k]
  const float* bias = nullptr;  // [k]
  int64_t rows = 0, k = 0;
};

// x *= factor, in place.
struct ScaleArgs {
  float* x = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
  float factor = 1;
};

// out = x + y. In place allowed.
struct AddArgs {
  const float* x = nullptr;  // [rows, k]
  const float* y = nullptr;  // [rows, k]
  float* out = nullptr;      // [rows, k]
  int64_t rows = 0, k = 0;
};

// What sampling gives for one row of logits.
struct Pick {
  int32_t token = 0;  // where a logit is not finite: -1 - its index, of the first such
  float margin = 0;   // highest logit minus the second highest, whatever was drawn; 0 where n = 1
};

// Temperature 0: the highest logit, ties to the lowest index. Else the first index whose running
// sum of exp((logit - highest) / temperature) exceeds `uniform` times the total.
struct SampleArgs {
  const float* logits = nullptr;  // [rows, n]
  Pick* picks = nullptr;          // [rows]
  int64_t rows = 0, n = 0;
  double temperature = 0;
  double uniform = 0;  // in [0, 1), the same for every row
};

// residual += x, then out = rms_norm(residual).
struct AddRmsNormArgs {
  const float* x = nullptr;       // [rows, k]
  float* residual = nullptr;      // [rows, k]
  const float* weight = nullptr;  // [k]
  float* out = nullptr;           // [rows, k], neither x nor residual
  int64_t rows = 0, k = 0;
  float epsilon = 0;
};

// Matmuls that share their activations: out_i[r, j] = sum over c of x[r, c] * weight_i[j, c].
inline constexpr int kMaxMatmulParts = 3;
struct MatmulPart {
  const void* weight = nullptr;  // [n, k] of weight_type
  float* out = nullptr;          // [rows, n]
  int64_t n = 0;
};
struct MatmulGroupArgs {
  const float* x = nullptr;  // [rows, k]
  MatmulPart parts[kMaxMatmulParts];
  int count = 0;  // of parts, at least 2
  DType weight_type = static_cast<DType>(0);
  int64_t rows = 0, k = 0;
  KernelParams params;
};

// out = swiglu(gate x, up x).
struct MatmulSwigluArgs {
  const float* x = nullptr;    // [rows, k]
  const void* gate = nullptr;  // [n, k] of weight_type
  const void* up = nullptr;    // [n, k] of weight_type
  DType weight_type = static_cast<DType>(0);
  float* out = nullptr;  // [rows, n]
  int64_t rows = 0, n = 0, k = 0;
  KernelParams params;
};

// An RMSNorm over each head of q and k (where their weights are given), rope on both, then
// attention. q and k may be overwritten.
struct RopeAttentionArgs {
  AttentionArgs attention;
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float epsilon = 0;
  int64_t rope_dims = 0;
  double rope_base = 10000.0;
  RopePairing pairing = RopePairing::kHalf;
};

using EmbeddingFn = void (*)(const EmbeddingArgs&, KernelContext&);
using RmsNormFn = void (*)(const RmsNormArgs&, KernelContext&);
using MatmulFn = void (*)(const MatmulArgs&, KernelContext&);
using RopeFn = void (*)(const RopeArgs&, KernelContext&);
using AttentionFn = void (*)(const AttentionArgs&, KernelContext&);
using SwigluFn = void (*)(const SwigluArgs&, KernelContext&);
using GegluFn = void (*)(const GegluArgs&, KernelContext&);
using AddBiasFn = void (*)(const AddBiasArgs&, KernelContext&);
using ScaleFn = void (*)(const ScaleArgs&, KernelContext&);
using AddFn = void (*)(const AddArgs&, KernelContext&);
using SampleFn = void (*)(const SampleArgs&, KernelContext&);
using CausalConvFn = void (*)(const CausalConvArgs&, KernelContext&);
using GatedDeltaRuleFn = void (*)(const GatedDeltaRuleArgs&, KernelContext&);
using GatedRmsNormFn = void (*)(const GatedRmsNormArgs&, KernelContext&);
using SplitGateFn = void (*)(const SplitGateArgs&, KernelContext&);
using SigmoidGateFn = void (*)(const SigmoidGateArgs&, KernelContext&);
using GatedAddFn = void (*)(const GatedAddArgs&, KernelContext&);
using ConcatFn = void (*)(const ConcatArgs&, KernelContext&);
using RouteFn = void (*)(const RouteArgs&, KernelContext&);
using ExpertMatmulSwigluFn = void (*)(const ExpertMatmulSwigluArgs&, KernelContext&);
using ExpertMatmulCombineFn = void (*)(const ExpertMatmulCombineArgs&, KernelContext&);
using AddRmsNormFn = void (*)(const AddRmsNormArgs&, KernelContext&);
using MatmulGroupFn = void (*)(const MatmulGroupArgs&, KernelContext&);
using MatmulSwigluFn = void (*)(const MatmulSwigluArgs&, KernelContext&);
using RopeAttentionFn = void (*)(const RopeAttentionArgs&, KernelContext&);

// Counts one run of `variant` (its compile-time name) with the shape that it was really given.
// Defined for the arguments of every op, in kernel.cpp.
template <typename Args>
void stamp(KernelContext& context, const char* variant, const char* source_hash, const Args& args);

}  // namespace reckon::kernels
