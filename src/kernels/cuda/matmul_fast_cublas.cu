#include "kernels/cuda/matmul_fast_cublas.h"

// hashed with "kernels/cuda/blaslt.cpp"
// hashed with "kernels/cuda/dequantise.cu"
// hashed with "kernels/cuda/matmul_fast_input.cu"

#include <algorithm>

#include "kernels/cuda/blaslt.h"
#include "kernels/cuda/dequantise.h"
#include "kernels/cuda/matmul_fast_cublas.hash.h"
#include "kernels/cuda/matmul_fast_input.h"
#include "kernels/cuda/queue.h"

namespace reckon::kernels::cuda {
namespace {

// What the strips of weight rows, and the second product of a swiglu, may take together.
constexpr int64_t kStripBudget = int64_t{192} << 20;
constexpr int kThreads = 256;

constexpr int64_t rounded_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Where things lie in the call's scratch: x [rows, padded k] of 16 bits | scales [rows] | the
// library's workspace | weight rows [strip_rows, padded k] of 16 bits | of a swiglu, the product
// with `up` [rows, strip_rows] as float32.
struct Layout {
  int64_t padded_k = 0;
  int64_t strip_rows = 0;
  int64_t scales = 0, workspace = 0, weight = 0, up = 0, total = 0;
};

Layout layout_of(Op op, int64_t rows, int64_t n, int64_t k) {
  Layout layout;
  layout.padded_k = tiles_of(k) * kTileColumns;
  const bool swiglu = op == Op::kMatmulSwiglu;
  const int64_t bytes_a_row = layout.padded_k * 2 + (swiglu ? rows * 4 : 0);
  // Cuts at multiples of 256 rows keep the library's tiles whole.
  const int64_t most = std::max<int64_t>(kStripBudget / bytes_a_row / 256 * 256, 256);
  layout.strip_rows = std::min(rounded_up(n, kTileRows), most);
  layout.scales = rounded_up(rows * layout.padded_k * 2, 256);
  layout.workspace = layout.scales + rounded_up(rows * 4, 256);
  layout.weight = layout.workspace + static_cast<int64_t>(kBlasLtWorkspaceBytes);
  layout.up = layout.weight + rounded_up(layout.strip_rows * layout.padded_k * 2, 256);
  layout.total = layout.up + (swiglu ? rows * layout.strip_rows * 4 : 0) + 256;
  return layout;
}

// Rows whose activations were scaled (rare) get their products scaled back; others are not read.
__global__ void __launch_bounds__(kThreads)
    scale_back_kernel(float* __restrict__ out, const float* __restrict__ scales, int64_t n) {
  const float scale = scales[blockIdx.x];
  if (scale == 1) return;
  float* row = out + blockIdx.x * n;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) row[i] *= scale;
}

// out = gate * sigmoid(gate) * up where out holds gate, a block a row of the strip.
__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(float* __restrict__ out, int64_t out_stride, const float* __restrict__ up,
                  int64_t up_stride, const float* __restrict__ scales, int64_t n) {
  const float scale = scales == nullptr ? 1 : scales[blockIdx.x];
  float* row = out + blockIdx.x * out_stride;
  const float* other = up + blockIdx.x * up_stride;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const float gate = row[i] * scale;
    row[i] = gate / (1 + __expf(-gate)) * (other[i] * scale);
  }
}

// One call's state: the converted activations and where the rest goes.
class Product {
 public:
  Product(KernelContext& context, Op op, DType type, const float* x, int64_t rows, int64_t n,
          int64_t k)
      : context_(context),
        type_(*fast_tile_type(type)),
        rows_(rows),
        k_(k),
        layout_(layout_of(op, rows, n, k)),
        base_(reinterpret_cast<uint8_t*>(rounded_up(
            reinterpret_cast<int64_t>(scratch(context, static_cast<uint64_t>(layout_.total))),
            256))) {
    const InputLaunch launch = convert_input(x, rows, k, bf16(), InputOrder::kRows, rows, base_,
                                             scale_data(), queue(context).stream);
    note_launch(context, launch.kernel, launch.grid, launch.block, 0);
    check(context, launch.error);
  }

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] float* up() const { return reinterpret_cast<float*>(base_ + layout_.up); }
  // Null where rows are not scaled.
  [[nodiscard]] const float* scales() const { return bf16() ? nullptr : scale_data(); }

  // out[r, j] for the weight's rows first ... first + count - 1, at most layout().strip_rows, from
  // a multiple of 16 on; not scaled back.
  void multiply_strip(const void* weight, int64_t first, int64_t count, float* out,
                      int64_t out_stride) {
    Queue& q = queue(context_);
    void* rows = base_ + layout_.weight;
    const DequantiseLaunch launch =
        dequantise_strips(type_, weight, k_, first / kTileRows, strips_of(count), rows, q.stream);
    note_launch(context_, launch.kernel, launch.grid, launch.block, 0);
    check(context_, launch.error);
    auto* library = static_cast<BlasLt*>(q.matmul_library);
    if (library == nullptr) return fail(context_, blaslt_missing_reason().c_str());
    BlasLtMatmul product;
    product.type = bf16() ? BlasLtType::kBf16 : BlasLtType::kF16;
    product.x = base_;
    product.weight = rows;
    product.out = out;
    product.rows = rows_;
    product.n = count;
    product.k = product.x_stride = product.weight_stride = layout_.padded_k;
    product.out_stride = out_stride;
    const char* error =
        library->matmul(product, base_ + layout_.workspace, kBlasLtWorkspaceBytes, q.stream);
    if (error != nullptr) fail(context_, error);
  }

  void multiply(const void* weight, int64_t n, float* out) {
    for (int64_t first = 0; first < n; first += layout_.strip_rows) {
      multiply_strip(weight, first, std::min(layout_.strip_rows, n - first), out + first, n);
    }
    if (scales() == nullptr) return;
    const dim3 grid(static_cast<unsigned>(rows_));
    scale_back_kernel<<<grid, kThreads, 0, queue(context_).stream>>>(out, scales(), n);
    note_launch(context_, reinterpret_cast<const void*>(scale_back_kernel), grid, dim3(kThreads),
                0);
    check(context_, cudaGetLastError());
  }

 private:
  [[nodiscard]] bool bf16() const { return type_ == TileType::kBf16; }
  [[nodiscard]] float* scale_data() const {
    return reinterpret_cast<float*>(base_ + layout_.scales);
  }

  KernelContext& context_;
  TileType type_;
  int64_t rows_, k_;
  Layout layout_;
  uint8_t* base_;
};

}  // namespace

void matmul_fast_cublas(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastCublas, kSourceHash, args);
  Product product(context, Op::kMatmul, args.weight_type, args.x, args.rows, args.n, args.k);
  product.multiply(args.weight, args.n, args.out);
}

void matmul_group_fast_cublas(const MatmulGroupArgs& args, KernelContext& context) {
  stamp(context, kFastCublas, kSourceHash, args);
  int64_t n = 0;
  for (int i = 0; i < args.count; ++i) n += args.parts[i].n;
  Product product(context, Op::kMatmulGroup, args.weight_type, args.x, args.rows, n, args.k);
  for (int i = 0; i < args.count; ++i) {
    product.multiply(args.parts[i].weight, args.parts[i].n, args.parts[i].out);
  }
}

void matmul_swiglu_fast_cublas(const MatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kFastCublas, kSourceHash, args);
  Product product(context, Op::kMatmulSwiglu, args.weight_type, args.x, args.rows, args.n, args.k);
  const int64_t strip = product.layout().strip_rows;
  const dim3 grid(static_cast<unsigned>(args.rows));
  for (int64_t first = 0; first < args.n; first += strip) {
    const int64_t count = std::min(strip, args.n - first);
    product.multiply_strip(args.gate, first, count, args.out + first, args.n);
    product.multiply_strip(args.up, first, count, product.up(), strip);
    swiglu_kernel<<<grid, kThreads, 0, queue(context).stream>>>(
        args.out + first, args.n, product.up(), strip, product.scales(), count);
    note_launch(context, reinterpret_cast<const void*>(swiglu_kernel), grid, dim3(kThreads), 0);
    check(context, cudaGetLastError());
  }
}

const char* matmul_fast_cublas_hash() {
  return kSourceHash;
}

std::string supports_fast_cublas(const OpCall& call) {
  if (!fast_tile_type(call.weight_type)) return "it multiplies p4, p8, f16 and bf16 weights";
  return blaslt_missing_reason();
}

uint64_t fast_cublas_scratch_bytes(const OpCall& call, const KernelParams& /*params*/,
                                   int /*threads*/) {
  return static_cast<uint64_t>(layout_of(call.op, call.rows, call.n, call.k).total);
}

int fast_cublas_preference(const OpCall& /*call*/) {
  // Writing and reading the unpacked weights is 10 % of its time at 2,048 rows and most at 128.
  return 10;
}

}  // namespace reckon::kernels::cuda
