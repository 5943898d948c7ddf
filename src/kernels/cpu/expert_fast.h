// The fast matmuls of routed experts in prefill: tiles of bfloat16, the rows of each expert packed
// into slots. Of panels, weights and activations are rounded as in matmul_fast.h; of packed
// weights, tiles hold the codes and activations are sums of two bfloat16.
//
// The slots of an expert are taken in slot tiles of KernelParams::expert_tile. A slot tile passes
// once over the unpacked weights of a band, in blocks of 8 slots; of its blocks, those that no row
// fills are skipped, or multiplied as zeros where skip_empty is off. A product is summed in the
// same order whatever stands beside it: neither parameter changes a bit.
//
// Plain types only; the layout is defined in expert_fast.cpp, for every machine.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels {
struct Device;
}  // namespace reckon::kernels

namespace reckon::kernels::cpu {

constexpr const char* kFastRowsAmx = "fast_rows_amx";

// AMX (tiles, bfloat16) and AVX-512 (F, BW, VL, BF16). Weights in panels (kFastAmx).
void expert_swiglu_fast_amx(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_fast_amx(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* expert_fast_amx_hash();
// Packed weights, in rows.
void expert_swiglu_fast_rows_amx(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_combine_fast_rows_amx(const ExpertMatmulCombineArgs& args, KernelContext& context);
[[nodiscard]] const char* expert_fast_rows_amx_hash();

constexpr int64_t kSlotBlock = 8;
constexpr int64_t kExpertBand = 8;       // panels of 16 weight rows that a task takes, at most
constexpr int64_t kActivationParts = 2;  // of a value, for packed weights

// Slots that so many rows of an expert take.
[[nodiscard]] int64_t slots_of(int64_t rows, const KernelParams& params);
// The most that `pairs` of a row and an expert take, however they fall on so many experts.
[[nodiscard]] int64_t most_slots(int64_t pairs, int64_t experts, const KernelParams& params);

// Bytes of a slot's activations, and of a thread's part of the
// scratch: unpacked weights, then what the places below begin.
[[nodiscard]] uint64_t slot_bytes(DType type, int64_t k);
struct ExpertThreadScratch {
  uint64_t sums = 0;
  uint64_t heads = 0;     // of weights in rows: scales and minima
  uint64_t products = 0;  // of weights in rows: tiles
  uint64_t filled = 0;    // of weights in rows: a panel of them
  uint64_t total = 0;
};
[[nodiscard]] ExpertThreadScratch expert_thread_scratch(DType type, int64_t k,
                                                        const KernelParams& params);

// What remains of the parameters for a call: an expert has at most all of its rows, and has them
// all where every row selects every expert.
[[nodiscard]] KernelParams effective_expert_params(const OpCall& call, const KernelParams& wanted,
                                                   const Device& device);

}  // namespace reckon::kernels::cpu
