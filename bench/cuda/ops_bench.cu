// Times the CUDA kernels of src/kernels/cuda but the matmuls, each by itself:
//   ops_bench time       medians of graph replays
//   ops_bench profile    a few launches of decode attention, for a profiler
#include <cuda_fp16.h>

#include <cstring>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/sample.h"
#include "tensor/dtype.h"
#include "timing.h"

namespace reckon::bench {
namespace {

using namespace kernels;

constexpr int kWidth = 4096;   // of a model
constexpr int kInner = 14336;  // of its feed-forward layers
constexpr int kHeads = 32, kKvHeads = 8, kHeadDim = 128;
constexpr int kLayers = 32;

void time_rows(Bench& bench) {
  constexpr int kMost = 2048;
  const Device<float> x(size_t{kMost} * kInner, 1), y(size_t{kMost} * kInner, 1), weight(kInner, 1);
  const Device<float> out(size_t{kMost} * kInner);
  std::printf("\n| op | shape | us |\n|---|---|---|\n");
  for (const int rows : {1, 16, kMost}) {
    const auto line = [&](const char* op, int k, const std::function<void(int)>& one) {
      std::printf("| %s | %d x %d | %.2f |\n", op, rows, k,
                  time_us(bench, rows > 100 ? 8 : 64, one));
    };
    line("rms_norm", kWidth, [&](int) {
      cuda::rms_norm_exact({x.data(), weight.data(), out.data(), rows, kWidth, 1e-5F},
                           bench.context);
    });
    line("add_rms_norm", kWidth, [&](int) {
      cuda::add_rms_norm_exact({x.data(), y.data(), weight.data(), out.data(), rows, kWidth, 1e-5F},
                               bench.context);
    });
    line("swiglu", kInner, [&](int) {
      cuda::swiglu_exact({x.data(), y.data(), out.data(), rows, kInner}, bench.context);
    });
    line("add", kWidth, [&](int) {
      cuda::add_exact({x.data(), y.data(), out.data(), rows, kWidth}, bench.context);
    });
    line("rope", kWidth, [&](int) {
      cuda::rope_exact({out.data(), rows, kHeads, kHeadDim, kHeadDim, 0, 10000, RopePairing::kHalf},
                       bench.context);
    });
  }
}

void time_sampling(Bench& bench) {
  for (const int n : {32000, 128256, 262144}) {
    const Device<float> logits(n, 4);
    const Device<Pick> pick(1);
    for (const double temperature : {0.0, 0.8}) {
      bench.step(0, temperature, 0.37);
      const double us = time_us(bench, 32, [&](int) {
        cuda::sample_exact({logits.data(), pick.data(), 1, n, 0, 0}, bench.context);
      });
      std::printf("| sample t=%.1f | %d | %.2f |\n", temperature, n, us);
    }
  }
}

// The caches of all layers, and queries for any of them.
class Attention {
 public:
  static constexpr int64_t kCapacity = 65536 + 64;
  static constexpr int kMostRows = 8192;
  static constexpr size_t kCache = size_t{kKvHeads} * kCapacity * kHeadDim;

  [[nodiscard]] RopeAttentionArgs args(int layer, int rows) const {
    RopeAttentionArgs args;
    AttentionArgs& a = args.attention;
    a.q = q_.data();
    a.k = k_.data();
    a.v = v_.data();
    a.cache_k = keys_.data() + kCache * layer;
    a.cache_v = values_.data() + kCache * layer;
    a.kv_type = DType::kF16;
    a.out = out_.data();
    a.rows = rows;
    a.heads = kHeads;
    a.kv_heads = kKvHeads;
    a.head_dim = kHeadDim;
    a.capacity = kCapacity;
    a.scale = 0.088388F;
    args.rope_dims = kHeadDim;
    return args;
  }

 private:
  Device<__half> keys_{kCache * kLayers, 1}, values_{kCache * kLayers, 1};
  Device<float> q_{size_t{kMostRows} * kHeads * kHeadDim, 1};
  Device<float> k_{size_t{kMostRows} * kKvHeads * kHeadDim, 1};
  Device<float> v_{size_t{kMostRows} * kKvHeads * kHeadDim, 1};
  Device<float> out_{size_t{kMostRows} * kHeads * kHeadDim};
};

void time_decode(Bench& bench, const Attention& attention) {
  std::printf(
      "\nrope_attention exact_mma, %d/%d heads of %d, f16, %d layers in turn, us a layer (GB/s of "
      "cache)\n| context | 1 row | 2 | 4 | 8 | 16 | 1 row, no overlap |\n|---|---|---|---|---|---|"
      "---|\n",
      kHeads, kKvHeads, kHeadDim, kLayers);
  for (const int64_t context : {256, 1024, 4096, 16384, 65536}) {
    std::printf("| %lld |", static_cast<long long>(context));
    bench.step(context - 1);
    const auto one = [&](int rows) {
      return time_us(bench, kLayers, [&](int layer) {
        cuda::rope_attention_exact_mma(attention.args(layer, rows), bench.context);
      });
    };
    for (const int rows : {1, 2, 4, 8, 16}) {
      const double us = one(rows);
      const double bytes = static_cast<double>(context) * kKvHeads * kHeadDim * 4;
      std::printf(" %.2f (%.0f) |", us, bytes / us / 1000);
    }
    bench.queue.overlap = false;
    std::printf(" %.2f |\n", one(1));
    bench.queue.overlap = true;
  }
}

void time_prefill(Bench& bench, const Attention& attention) {
  std::printf(
      "\nPrefill, %d/%d heads of %d, TFLOP/s counting the causal half\n"
      "| kernel | rows | at | us | TFLOP/s |\n|---|---|---|---|---|\n",
      kHeads, kKvHeads, kHeadDim);
  for (const int rows : {512, 2048, 8192}) {
    for (const int64_t first : {0, 8192}) {
      bench.step(first);
      const double n = rows;
      const double flops =
          4.0 * kHeads * kHeadDim * (n * static_cast<double>(first) + n * (n + 1) / 2);
      const auto line = [&](const char* name, int layers, const std::function<void(int)>& one) {
        const double us = time_us(bench, layers, one, 9);
        std::printf("| %s | %d | %lld | %.1f | %.0f |\n", name, rows, static_cast<long long>(first),
                    us, flops / us / 1e6);
      };
      line("fast_mma", 4, [&](int layer) {
        cuda::attention_fast_mma(attention.args(layer, rows).attention, bench.context);
      });
      line("fast_wgmma", 4, [&](int layer) {
        cuda::attention_fast_wgmma(attention.args(layer, rows).attention, bench.context);
      });
      line("rope, fast_wgmma", 4, [&](int layer) {
        cuda::rope_attention_fast_wgmma(attention.args(layer, rows), bench.context);
      });
      line("exact_mma", 2, [&](int layer) {
        cuda::attention_exact_mma(attention.args(layer, rows).attention, bench.context);
      });
    }
  }
}

void profile(Bench& bench, const Attention& attention) {
  for (const int64_t context : {256, 1024, 16384}) {
    for (const int rows : {1, 4, 8, 16}) {
      bench.step(context - 1);
      for (int layer = 0; layer < 2; ++layer) {
        cuda::rope_attention_exact_mma(attention.args(layer, rows), bench.context);
      }
    }
  }
  bench.wait();
}

}  // namespace
}  // namespace reckon::bench

int main(int argc, char** argv) {
  using namespace reckon::bench;
  const bool profiling = argc == 2 && std::strcmp(argv[1], "profile") == 0;
  if (argc != 2 || (!profiling && std::strcmp(argv[1], "time") != 0)) {
    std::printf("ops_bench time | profile\n");
    return 2;
  }
  print_device();
  Bench bench(uint64_t{512} << 20);
  if (!profiling) {
    time_rows(bench);
    time_sampling(bench);
  }
  const Attention attention;
  if (profiling) {
    profile(bench, attention);
    return 0;
  }
  time_decode(bench, attention);
  time_prefill(bench, attention);
  return 0;
}
