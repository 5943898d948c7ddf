// Exact matmuls for few rows: out[r, j] = sum over i of x[r, i] * w[j, i], activations and results
// in float32, weights as tiles (weight_tiles.h), one pass over the weights for 1 ... 16 rows.
//
// Exact: a row of `out` has the same bits whatever the other rows are, however many there are, in
// whichever form (plain, group, SwiGLU before its activation) and on whatever geometry. K is cut
// into kGemvSegments runs of whole tiles; a segment is summed tile by tile in ascending order, and
// segments are combined in one fixed binary tree. No atomics.
//
// Two numerics, two kernel families:
//   gemv_mma    activations rounded to half per (row, 64 columns) with a power-of-two scale, so
//               that any finite float32 magnitude works; bf16 weights take them as the sum of two
//               bf16 instead. Integer codes are exact, scales and minima are applied in float32.
//   gemv_simt   activations stay float32 (f32 weights, and any type where 1e-4 is wanted).
//
// Rows over 16 run as slabs of 16 in the same launch: exact prefill, one pass over the weights a
// slab.
//
// Threading: launches are safe from any thread; a GemvDevice is read only. Nothing here allocates,
// synchronises or keeps state, and everything may be captured into a graph.
#pragma once

#include <cstdint>

#include "kernels/cuda/weight_tiles.h"

struct CUstream_st;  // *cudaStream_t

namespace reckon::kernels::cuda {

inline constexpr int kGemvSegments = 8;
inline constexpr int kGemvMaxWeights = 3;
inline constexpr int kGemvSlabRows = 16;

// What the launches need to know of a device; one a device, made by gemv_prepare().
struct GemvDevice {
  static constexpr int kMaxBlocks = 2;  // of one multiprocessor that a geometry may count on
  int multiprocessors = 0;
  int compute_capability = 0;       // 90 for 9.0; at most what the kernels were built for
  int64_t block_shared_bytes = 0;   // the most that one block may take
  int64_t device_shared_bytes = 0;  // of one multiprocessor
  // Clusters of 1, 2, 4, 8 blocks that run at once when `b` blocks share a multiprocessor's shared
  // memory: [log2 of the cluster][b - 1].
  int resident_clusters[4][kMaxBlocks] = {};
};

// Reads the current device's limits and raises the kernels' shared memory limits on it. Returns a
// cudaError_t. Call once a device, before the first launch and outside graph capture.
[[nodiscard]] int gemv_prepare(GemvDevice* device);

struct GemvWeight {
  const void* tiles = nullptr;  // [n, k], packed by pack_tiles(); 16-byte aligned
  float* out = nullptr;         // [rows, n]; ignored for weights[1] of kSwiglu
  int64_t n = 0;
  int64_t out_stride = 0;  // floats between rows of out, at least n
};

enum class GemvForm : uint8_t {
  kStore,   // each weight has its own out
  kSwiglu,  // two weights of one n: weights[0].out = silu(gate) * up, gate first
};

enum class GemvOrder : uint8_t {
  kSerial,   // starts when the stream's work before it is done
  kOverlap,  // programmatic dependent launch: fetches weights while the kernel before still runs.
             // Weights must not be written by work of this stream that is still pending then.
};

// How the mma family cuts the work: chosen by gemv_tuning(), never visible in the results.
struct GemvTuning {
  int cluster = 1;        // blocks that share one K: 1, 2, 4 or 8 (1 before compute capability 9)
  int blocks_per_sm = 2;  // resident at once; what the grid is sized for
  int stage_tiles = 4;    // the most tiles that one copy brings a warp, 1 ... 8
  int slots = 3;          // copies in flight a warp, 2 ... 16
  int early_slots = 16;   // of them, those that do not wait until x has been read: at most `slots`
};

struct GemvParams {
  TileType type = TileType::kP4;
  const float* x = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
  int64_t x_stride = 0;  // floats between rows of x, at least k
  GemvWeight weights[kGemvMaxWeights];
  int weight_count = 1;
  GemvForm form = GemvForm::kStore;
  GemvOrder order = GemvOrder::kSerial;
  const GemvTuning* tuning = nullptr;  // null: gemv_tuning()'s choice
};

// What was launched, for the trace. `error` is a cudaError_t; nothing ran unless it is 0.
// cudaErrorInvalidValue: the arguments break the contract above, or K needs more shared memory than
// the device has (gemv_supports() says so beforehand).
struct GemvLaunch {
  int error = 0;
  const void* kernel = nullptr;  // the host handle of the kernel that ran
  unsigned grid[3] = {0, 0, 0};
  unsigned block = 0;
  unsigned shared_bytes = 0;
  unsigned cluster = 1;
};

// Whether gemv_mma can run the type at this K on the device. f32 weights: never. Others: up to K of
// about 500,000 (bf16: 380,000) on an H200, and 41,000 (bf16: 31,000) on an A100.
[[nodiscard]] bool gemv_supports(const GemvDevice& device, TileType type, int64_t k);

// The default geometry for a call of min(rows, 16) rows, with `units` strips (of a SwiGLU pair: of
// one of its weights) in all.
[[nodiscard]] GemvTuning gemv_tuning(const GemvDevice& device, TileType type, int64_t rows,
                                     int64_t k, int64_t units);

// Half (bf16 pair) activations, tolerance 5e-3 of a row's norm. Types: p4, p8, f16, bf16.
[[nodiscard]] GemvLaunch gemv_mma(const GemvDevice& device, const GemvParams& params,
                                  CUstream_st* stream);

// float32 activations, tolerance 1e-4 of a row's norm. All types.
[[nodiscard]] GemvLaunch gemv_simt(const GemvDevice& device, const GemvParams& params,
                                   CUstream_st* stream);

}  // namespace reckon::kernels::cuda
