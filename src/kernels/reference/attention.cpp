// Softmax in two passes over the keys, without a buffer of scores: the first finds the largest
// score, the second computes each score again and adds up weights (float64) and weighted values
// (float32), both in ascending order of positions. It costs a second look at the keys and needs
// no scratch, whatever the context; no running maximum is ever rescaled.
// A score is the dot product of dot.h.
#include <cmath>

#include "kernels/reference/attention.hash.h"
#include "kernels/reference/dot.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

void store_rows(const AttentionArgs& args) {
  auto* cache_k = static_cast<float*>(args.cache_k);
  auto* cache_v = static_cast<float*>(args.cache_v);
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t h = 0; h < args.kv_heads; ++h) {
      const int64_t from = (r * args.kv_heads + h) * args.head_dim;
      const int64_t to = (h * args.capacity + args.first_position + r) * args.head_dim;
      for (int64_t i = 0; i < args.head_dim; ++i) {
        cache_k[to + i] = args.k[from + i];
        cache_v[to + i] = args.v[from + i];
      }
    }
  }
}

// Task: one row of one head.
void attend(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const AttentionArgs*>(argument);
  const int64_t row = task / args.heads;
  const int64_t head = task % args.heads;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const int64_t positions = args.first_position + row + 1;
  const int64_t begin =
      args.window > 0 && positions > args.window ? positions - args.window : int64_t{0};
  const float* q = args.q + task * args.head_dim;
  const int64_t first = kv_head * args.capacity * args.head_dim;
  const float* keys = static_cast<const float*>(args.cache_k) + first;
  const float* values = static_cast<const float*>(args.cache_v) + first;
  float* out = args.out + task * args.head_dim;

  float largest = -INFINITY;
  for (int64_t p = begin; p < positions; ++p) {
    largest = std::fmax(largest, args.scale * dot(q, keys + p * args.head_dim, args.head_dim));
  }
  double sum = 0;
  for (int64_t i = 0; i < args.head_dim; ++i) out[i] = 0;
  for (int64_t p = begin; p < positions; ++p) {
    const float score = args.scale * dot(q, keys + p * args.head_dim, args.head_dim);
    const float weight = std::exp(score - largest);
    const float* value = values + p * args.head_dim;
    sum += static_cast<double>(weight);
    for (int64_t i = 0; i < args.head_dim; ++i) out[i] += weight * value[i];
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (int64_t i = 0; i < args.head_dim; ++i) out[i] *= inverse;
}

}  // namespace

void attention(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  store_rows(args);
  AttentionArgs copy = args;
  parallel_for(context, args.rows * args.heads, attend, &copy);
}

const char* attention_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
