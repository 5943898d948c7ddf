#include "kernels/reference/kernels.h"
#include "kernels/reference/route.hash.h"
#include "kernels/route_weights.h"

namespace reckon::kernels::reference {
namespace {

// Puts the experts of the highest logits in ids, best first. One that is not above another is
// behind it, so that of equal ones the first stays in front, and a NaN is never above anything.
void select(const float* logits, int64_t experts, int64_t top_k, int32_t* ids) {
  int64_t count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (count == top_k && !(logits[e] > logits[ids[count - 1]])) continue;
    if (count < top_k) ++count;
    int64_t at = count - 1;
    for (; at > 0 && logits[e] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
    ids[at] = static_cast<int32_t>(e);
  }
}

void sort_ascending(int32_t* ids, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const int32_t id = ids[i];
    int64_t at = i;
    for (; at > 0 && ids[at - 1] > id; --at) ids[at] = ids[at - 1];
    ids[at] = id;
  }
}

void route_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const RouteArgs*>(argument);
  const float* logits = args.logits + row * args.experts;
  float* words = args.selection + row * 2 * args.top_k;
  auto* ids = reinterpret_cast<int32_t*>(words);
  select(logits, args.experts, args.top_k, ids);
  const float highest = logits[ids[0]];
  sort_ascending(ids, args.top_k);
  weigh_selection(logits, args.experts, args.top_k, highest, args.weights, words);
}

}  // namespace

void route(const RouteArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  RouteArgs copy = args;
  parallel_for(context, args.rows, route_row, &copy);
}

const char* route_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
