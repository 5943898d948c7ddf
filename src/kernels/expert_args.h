// The arguments of the ops of routed experts: what kernel.h is for the others, which includes this.
// Plain types only.
//
// A selection says which experts a row goes to, and with which weights: [rows, 2 * top_k] words of
// 4 bytes in one activation buffer. A row has top_k expert ids (int32, ascending, distinct, in
// [0, experts)), then as many float32 weights in the same order. The ascending order is the order
// in which the experts' results are added, whatever the scores.
//
// The experts' matrices are one weight of experts * n rows, those of expert e from row e * n on.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace reckon::kernels {

// `static`, so that no copy compiled for a newer machine is shared.
static inline const int32_t* selected_experts(const float* selection, int64_t row, int64_t top_k) {
  return reinterpret_cast<const int32_t*>(selection + row * 2 * top_k);
}
static inline const float* selected_weights(const float* selection, int64_t row, int64_t top_k) {
  return selection + row * 2 * top_k + top_k;
}

// What a selected expert's weight is: its share of the softmax over all experts, or that divided by
// the sum of the selected ones.
enum class RouteWeights : uint8_t { kOfAll, kOfSelected };

// The top_k experts of the highest logits, ties to the lower index (Shazeer et al. 2017,
// arXiv:1701.06538). With a NaN among a row's logits its ids are still valid and its weights NaN.
struct RouteArgs {
  const float* logits = nullptr;  // [rows, experts]
  float* selection = nullptr;     // [rows, 2 * top_k], see above
  int64_t rows = 0, experts = 0, top_k = 0;
  RouteWeights weights = RouteWeights::kOfAll;
};

// out[r * top_k + j, :] = silu(gate_e x[r]) * (up_e x[r]), e the j-th selected expert of row r.
struct ExpertMatmulSwigluArgs {
  const float* x = nullptr;          // [rows, k]
  const float* selection = nullptr;  // [rows, 2 * top_k]
  const void* gate = nullptr;        // [experts * n, k] of weight_type
  const void* up = nullptr;          // [experts * n, k] of weight_type
  DType weight_type = static_cast<DType>(0);
  float* out = nullptr;  // [rows * top_k, n]
  int64_t rows = 0, experts = 0, top_k = 0, n = 0, k = 0;
  bool in_panels = false;
  bool panels_alone = false;          // rows are not kept
  const void* gate_panels = nullptr;  // where the variant reads panels (kernels/panels.h)
  const void* up_panels = nullptr;
  KernelParams params = {};
};

// out[r, :] = sum over j of weight[r, j] * (down_e x[r * top_k + j]), e the j-th selected expert of
// row r; products and sums are rounded one by one, j ascending, from +0.
struct ExpertMatmulCombineArgs {
  const float* x = nullptr;          // [rows * top_k, k]
  const float* selection = nullptr;  // [rows, 2 * top_k]
  const void* down = nullptr;        // [experts * n, k] of weight_type
  DType weight_type = static_cast<DType>(0);
  float* out = nullptr;  // [rows, n]
  int64_t rows = 0, experts = 0, top_k = 0, n = 0, k = 0;
  bool in_panels = false;
  bool panels_alone = false;          // rows are not kept
  const void* down_panels = nullptr;  // where the variant reads panels
  KernelParams params = {};
};

}  // namespace reckon::kernels
