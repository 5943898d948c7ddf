#include "kernels/cuda/attention.h"

#include "tensor/dtype.h"

namespace reckon::kernels::cuda {
namespace {

std::string supports(const OpCall& call, DType cache) {
  if (call.weight_type != cache) {
    return "a cache of " + std::string(dtype_name(call.weight_type)) + "; it reads " +
           std::string(dtype_name(cache));
  }
  if (call.groups < 1 || call.n % call.groups != 0) {
    return std::to_string(call.n) + " query heads do not divide into " +
           std::to_string(call.groups) + " groups";
  }
  if (call.k % 8 != 0 || call.k < 8 || call.k > 256) {
    return "heads of " + std::to_string(call.k) + "; it takes multiples of 8 up to 256";
  }
  return "";
}

}  // namespace

std::string attention_exact_mma_supports(const OpCall& call) {
  return supports(call, DType::kF16);
}

std::string attention_exact_simt_supports(const OpCall& call) {
  return supports(call, DType::kF32);
}

std::string attention_fast_mma_supports(const OpCall& call) {
  if (call.k != 64 && call.k != 128) {
    return "heads of " + std::to_string(call.k) + "; it takes 64 and 128";
  }
  if (call.rows < 16) return std::to_string(call.rows) + " rows; it takes 16 and more";
  return supports(call, DType::kF16);
}

std::string attention_fast_wgmma_supports(const OpCall& call) {
  return attention_fast_mma_supports(call);
}

uint64_t attention_scratch_bytes(int64_t rows, int64_t heads, int64_t head_dim) {
  if (rows > kSplitRows) return 0;
  // A vector, a maximum and a sum a segment.
  return static_cast<uint64_t>(rows * heads * kMaxSegments * (head_dim + 2)) * sizeof(float);
}

}  // namespace reckon::kernels::cuda
