#include "kernels/reference/concat.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

void concat_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const ConcatArgs*>(argument);
  const float* a = args.a + row * args.a_columns;
  const float* b = args.b + row * args.b_columns;
  float* out = args.out + row * (args.a_columns + args.b_columns);
  for (int64_t i = 0; i < args.a_columns; ++i) out[i] = a[i];
  for (int64_t i = 0; i < args.b_columns; ++i) out[args.a_columns + i] = b[i];
}

}  // namespace

void concat(const ConcatArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  ConcatArgs copy = args;
  parallel_for(context, args.rows, concat_row, &copy);
}

const char* concat_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
