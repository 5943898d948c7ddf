// The sum of two activations with AVX2. Each element is one addition, so that tasks may cut rows
// anywhere.
#include <immintrin.h>

#include "kernels/cpu/add_exact_avx2.hash.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vectors_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
constexpr int64_t kTaskValues = 16384;  // about a microsecond

void add_task(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const AddArgs*>(argument);
  const int64_t first = task * kTaskValues;
  const int64_t left = args.rows * args.k - first;
  add_values(args.x + first, args.y + first, args.out + first,
             left < kTaskValues ? left : kTaskValues);
}

}  // namespace

void add_exact_avx2(const AddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  AddArgs copy = args;
  parallel_for(context, (args.rows * args.k + kTaskValues - 1) / kTaskValues, add_task, &copy);
}

const char* add_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
