// The ops: the only thing that models call. A model writes its forward pass once as calls on Ops;
// the Dispatcher runs them (dispatch.h), the Recorder lists them for the plan (recorder.h).
//
// Shapes are a contract: a mismatch is a CHECK, because families verify every tensor at load.
// A Status fails only where the plan refuses (a forced kernel that cannot run a call).
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

// One layer's cache, [kv_heads, capacity, head_dim] each; data may be null in a dry run.
struct KvCache {
  float* keys = nullptr;
  float* values = nullptr;
  int64_t kv_heads = 0, capacity = 0, head_dim = 0;
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
  virtual Status add(Activation x, Activation y, Activation out) = 0;
};

}  // namespace reckon::kernels
