// The weights of a row's selected experts, for the route op and for selections that were forced.
//
// The softmax's sums are float64: over all experts ascending, over the selected ones ascending.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/expert_args.h"

namespace reckon::kernels {

// Fills in the weights of a selection's row (expert_args.h) whose ids are there. `highest` is the
// highest logit.
inline void weigh_selection(const float* logits, int64_t experts, int64_t top_k, float highest,
                            RouteWeights kind, float* selection) {
  const int32_t* ids = selected_experts(selection, 0, top_k);
  float* weights = selection + top_k;
  double all = 0;
  double selected = 0;
  for (int64_t e = 0; e < experts; ++e) all += static_cast<double>(std::exp(logits[e] - highest));
  for (int64_t j = 0; j < top_k; ++j) {
    weights[j] = std::exp(logits[ids[j]] - highest);
    selected += static_cast<double>(weights[j]);
  }
  // A NaN among the logits is in the sum of all; times 0 it reaches the weights in either case.
  const double total = kind == RouteWeights::kOfSelected ? selected + 0 * all : all;
  for (int64_t j = 0; j < top_k; ++j) {
    weights[j] = static_cast<float>(static_cast<double>(weights[j]) / total);
  }
}

}  // namespace reckon::kernels
