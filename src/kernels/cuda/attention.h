// Attention on CUDA: causal, grouped queries, a cache of f16 (tensor cores) or f32. Plain types and
// strings only. Each hash function returns the source hash of its file.
//
// rope_attention_* give the bits of the same class's rms_norm over heads, rope and attention_*, in
// fewer kernels. Positions are read from the queue's StepInput: args.first_position is not looked
// at, so that a captured graph can be replayed for another step. Before a kernel waits for the one
// before it, it may fetch the cache below StepInput's first position (launch.cuh).
//
// exact: the order of operations, which makes a row's bits depend on its own position only -
// decode, verify and prefill in any chunks, on any grid and capacity, agree:
//  - The positions 0 ... P of a row are cut into segments whose bounds depend on the position
//    alone: 32 of 64 positions, then 32 to each doubling of the context (attention_segments.cuh). A
//    segment is reduced on its own, tile by tile of 64 positions in ascending order, with a running
//    maximum; the last one ends at P, and what is masked adds exact zeros.
//  - Segments are combined in ascending order into (M, S, O): M' = max(M, m);
//    a = 2^(M - M'); b = 2^(m - M'); S = fma(S, a, s b); O = fma(O, a, o b). The row is O / S.
// Segments may be reduced by different blocks or one after another by one: the same operations in
// the same order. So 32 and more blocks share a KV head of a decode step at any context, there are
// at most kMaxSegments partial results a row, and their number needs no bound by the capacity.
//
// exact_mma (f16): scores and weighted values by mma.m16n8k16 with float32 sums. Queries and
// weights are the sum of two halves each (22 bits), after a power-of-two scale, so that the result
// is as good as float32 arithmetic on the f16 cache. One read of the cache for up to 64 queries of
// a KV head (heads of the group times rows). As long as what a pass stores is finite in f16: a row
// that stores an infinite value reaches earlier rows of the same pass.
// exact_simt (f32): float32 throughout, one block a row and head. Blocks of 64 positions are dealt
// to 8 warps by their index, the warps' results combined in ascending order.
// fast_mma and fast_wgmma (f16): prefill. Queries and weights are rounded to f16. fast_wgmma runs
// on compute capability 9.0 alone and fails elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// Segments of a row of up to 1048576 positions.
inline constexpr int64_t kMaxSegments = 320;
inline constexpr int64_t kMaxPositions = 1048576;
// Passes of up to this many rows share out the segments of a row among blocks and need scratch.
inline constexpr int64_t kSplitRows = 16;

void attention_exact_mma(const AttentionArgs& args, KernelContext& context);
void rope_attention_exact_mma(const RopeAttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_exact_mma_hash();

void attention_exact_simt(const AttentionArgs& args, KernelContext& context);
void rope_attention_exact_simt(const RopeAttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_exact_simt_hash();

void attention_fast_mma(const AttentionArgs& args, KernelContext& context);
void rope_attention_fast_mma(const RopeAttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_fast_mma_hash();

void attention_fast_wgmma(const AttentionArgs& args, KernelContext& context);
void rope_attention_fast_wgmma(const RopeAttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_fast_wgmma_hash();

// Why a variant, of either op, cannot run a call; "" where it can. A cache of another type, heads
// that do not divide into groups, a head_dim that is no multiple of 8 in 8 ... 256 (fast_*: 64 or
// 128, and at least 16 rows).
[[nodiscard]] std::string attention_exact_mma_supports(const OpCall& call);
[[nodiscard]] std::string attention_exact_simt_supports(const OpCall& call);
[[nodiscard]] std::string attention_fast_mma_supports(const OpCall& call);
[[nodiscard]] std::string attention_fast_wgmma_supports(const OpCall& call);

// Of exact_mma; the others need none.
[[nodiscard]] uint64_t attention_scratch_bytes(int64_t rows, int64_t heads, int64_t head_dim);

}  // namespace reckon::kernels::cuda
