// The launches of gemv.h with what a session gives its kernels.
//
// hashed with "kernels/cuda/gemv_launch.cu"
// hashed with "kernels/cuda/gemv_mma_bf16.cu"
// hashed with "kernels/cuda/gemv_mma_f16.cu"
// hashed with "kernels/cuda/gemv_mma_p4.cu"
// hashed with "kernels/cuda/gemv_mma_p8.cu"
// hashed with "kernels/cuda/gemv_simt.cu"
#include "kernels/cuda/matmul_exact.h"

#include "kernels/cuda/gemv.h"
#include "kernels/cuda/matmul_exact.hash.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/tile_type.h"

namespace reckon::kernels::cuda {
namespace {

using Gemv = GemvLaunch (*)(const GemvDevice&, const GemvParams&, CUstream_st*);

// K beyond this does not fit the shared memory of every supported device (gemv_supports()).
constexpr int64_t kMaxColumns = 40000;

void launch(Gemv gemv, GemvParams params, KernelContext& context) {
  const Queue& queue = cuda::queue(context);
  params.x_stride = params.k;
  params.order = queue.overlap ? GemvOrder::kOverlap : GemvOrder::kSerial;
  const GemvLaunch made = gemv(*queue.gemv, params, queue.stream);
  check(context, static_cast<cudaError_t>(made.error));
  if (made.error == 0) {
    note_launch(context, made.kernel, dim3(made.grid[0], made.grid[1], made.grid[2]),
                dim3(made.block), made.shared_bytes);
  }
}

GemvParams params_of(const MatmulArgs& args) {
  GemvParams params;
  params.type = *tile_type(args.weight_type);
  params.x = args.x;
  params.rows = args.rows;
  params.k = args.k;
  params.weights[0] = {args.weight, args.out, args.n, args.n};
  return params;
}

}  // namespace

void matmul_exact_mma(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactMma, kSourceHash, args);
  launch(gemv_mma, params_of(args), context);
}

void matmul_exact_simt(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactSimt, kSourceHash, args);
  launch(gemv_simt, params_of(args), context);
}

void matmul_reference(const MatmulArgs& args, KernelContext& context) {
  stamp(context, "reference", kSourceHash, args);
  launch(gemv_simt, params_of(args), context);
}

void matmul_group_exact_mma(const MatmulGroupArgs& args, KernelContext& context) {
  stamp(context, kExactMma, kSourceHash, args);
  GemvParams params;
  params.type = *tile_type(args.weight_type);
  params.x = args.x;
  params.rows = args.rows;
  params.k = args.k;
  params.weight_count = args.count;
  for (int i = 0; i < args.count; ++i) {
    const MatmulPart& part = args.parts[i];
    params.weights[i] = {part.weight, part.out, part.n, part.n};
  }
  launch(gemv_mma, params, context);
}

void matmul_swiglu_exact_mma(const MatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactMma, kSourceHash, args);
  GemvParams params;
  params.type = *tile_type(args.weight_type);
  params.x = args.x;
  params.rows = args.rows;
  params.k = args.k;
  params.weight_count = 2;
  params.form = GemvForm::kSwiglu;
  params.weights[0] = {args.gate, args.out, args.n, args.n};
  params.weights[1] = {args.up, nullptr, args.n, args.n};
  launch(gemv_mma, params, context);
}

const char* matmul_exact_hash() {
  return kSourceHash;
}

std::string supports_exact_mma(const OpCall& call) {
  if (call.weight_type == DType::kF32) return "f32 weights do not fit the half-precision units";
  if (call.k > kMaxColumns) {
    return "k = " + std::to_string(call.k) + " is over " + std::to_string(kMaxColumns);
  }
  return supports_exact_simt(call);
}

std::string supports_exact_simt(const OpCall& call) {
  if (tile_type(call.weight_type)) return "";
  return "weights of type " + std::string(dtype_name(call.weight_type)) + " have no tiles";
}

}  // namespace reckon::kernels::cuda
