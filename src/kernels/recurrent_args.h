// The arguments of the ops of recurrent layers and of gates: what kernel.h is for the others, which
// includes this. Plain types only.
//
// The state of a recurrent layer is kept by position, not overwritten in place, so that rolling
// back to an earlier position is nothing but running on from there: what a position needs is still
// in its slot as long as the caller gave enough slots.
#pragma once

#include <cstdint>

namespace reckon::kernels {

// A depthwise convolution over the last `width` positions, then silu:
//   y = sum over j of weight[c, j] * x[p - (width - 1) + j, c];  out[r, c] = y * sigmoid(y)
// with p = first_position + r; inputs before position 0 are zeros (Gu & Dao 2023,
// arXiv:2312.00752). Inputs of earlier calls come from `inputs`, where that of position p is in
// slot p mod ring; the call's own last min(rows, ring) inputs are stored there. A caller that may
// roll back by up to b rows needs a ring of at least width - 1 + b.
struct CausalConvArgs {
  const float* x = nullptr;                             // [rows, channels]
  const float* weight = nullptr;                        // [channels, width]
  float* inputs = nullptr;                              // [ring, channels]
  float* out = nullptr;                                 // [rows, channels], not x
  int64_t rows = 0, channels = 0, width = 0, ring = 0;  // ring >= width - 1
  int64_t first_position = 0;
};

// Which key head serves value head h, each serving as many: h / (value_heads / key_heads), as
// Hugging Face has it, or h mod key_heads, the order of GGUF files of Qwen 3.5.
enum class KeyHeadOrder : uint8_t { kConsecutive, kTiled };

// The gated delta rule (Yang et al. 2024, arXiv:2412.06464), row by row. A row of qkv has the heads
// of q, of k and of v one after another. With q and k divided by sqrt(sum of squares + 1e-6), q
// also by sqrt(key_dim), and for value head h
//   decay = exp(-exp(a_log[h]) * softplus(a[r, h] + dt_bias[h])),  beta = sigmoid(b[r, h])
// a row does, for each value head:
//   S = decay * S;  u = beta * (v - transpose(S) k);  S = S + k transpose(u)
//   out = transpose(S) q
// The state before position p is in slot p mod slots, zeros before position 0 whatever is stored;
// the state after it is written to slot (p + 1) mod slots. Only the states of the last
// min(rows, slots) rows are sure to be there afterwards, and that before the first row where
// rows < slots: a caller that may roll back by up to b rows needs b + 1 slots. With one slot the
// state is updated in place.
struct GatedDeltaRuleArgs {
  const float* qkv = nullptr;      // [rows, 2 * key_heads * key_dim + value_heads * value_dim]
  const float* a = nullptr;        // [rows, value_heads]
  const float* b = nullptr;        // [rows, value_heads]
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
  float* states = nullptr;         // [slots, value_heads, key_dim, value_dim]
  float* out = nullptr;            // [rows, value_heads * value_dim]
  int64_t rows = 0, key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, slots = 0;
  int64_t first_position = 0;
  KeyHeadOrder key_order = KeyHeadOrder::kConsecutive;
};

// out = rms_norm(x) * silu(z), the norm as in RmsNormArgs. In place allowed (out == x).
struct GatedRmsNormArgs {
  const float* x = nullptr;       // [rows, k]
  const float* z = nullptr;       // [rows, k]
  const float* weight = nullptr;  // [k]
  float* out = nullptr;           // [rows, k]
  int64_t rows = 0, k = 0;
  float epsilon = 0;
};

// Parts what one projection gave: of each head the first `dim` columns are the query, the others
// its gate.
struct SplitGateArgs {
  const float* x = nullptr;  // [rows, heads, 2 * dim]
  float* q = nullptr;        // [rows, heads, dim]
  float* gate = nullptr;     // [rows, heads, dim]
  int64_t rows = 0, heads = 0, dim = 0;
};

// x *= sigmoid(gate), element by element, in place.
struct SigmoidGateArgs {
  float* x = nullptr;           // [rows, k]
  const float* gate = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
};

// out[r, :] += sigmoid(gate[r]) * y[r, :].
struct GatedAddArgs {
  const float* y = nullptr;     // [rows, k]
  const float* gate = nullptr;  // [rows]
  float* out = nullptr;         // [rows, k]
  int64_t rows = 0, k = 0;
};

// out[r, :] = a[r, :] and then b[r, :].
struct ConcatArgs {
  const float* a = nullptr;  // [rows, a_columns]
  const float* b = nullptr;  // [rows, b_columns]
  float* out = nullptr;      // [rows, a_columns + b_columns]
  int64_t rows = 0, a_columns = 0, b_columns = 0;
};

}  // namespace reckon::kernels
