#include "kernels/reference/embedding.hash.h"
#include "kernels/reference/kernels.h"
#include "tensor/dtype.h"

namespace reckon::kernels::reference {

void embedding(const EmbeddingArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const int64_t stride = row_bytes(args.weight_type, args.k);
  for (int64_t r = 0; r < args.rows; ++r) {
    const char* row = static_cast<const char*>(args.table) + args.tokens[r] * stride;
    dequantize_row(args.weight_type, row, args.k, args.out + r * args.k);
  }
}

const char* embedding_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
