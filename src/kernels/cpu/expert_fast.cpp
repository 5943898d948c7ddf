#include "kernels/cpu/expert_fast.h"

#include <algorithm>

#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// What the slots of an expert are filled up to.
int64_t slot_step(const KernelParams& params) {
  return params.skip_empty ? kSlotBlock : params.expert_tile;
}

bool is_packed(DType type) {
  return type == DType::kP4 || type == DType::kP8;
}

}  // namespace

int64_t slots_of(int64_t rows, const KernelParams& params) {
  return round_up(rows, slot_step(params));
}

int64_t most_slots(int64_t pairs, int64_t experts, const KernelParams& params) {
  const int64_t step = slot_step(params);
  return (pairs + std::min(pairs, experts) * (step - 1)) / step * step;
}

uint64_t slot_bytes(DType type, int64_t k) {
  const int64_t groups = activation_groups(type, k);
  const int64_t values = groups * (kTileBytes / kTileSide);
  if (!is_packed(type)) return static_cast<uint64_t>(values);
  // And sums; those of a block of slots fill whole lines.
  const int64_t sums = round_up(groups / 2 * int64_t{sizeof(float)}, kSlotBlock);
  return static_cast<uint64_t>(values * kActivationParts + sums);
}

ExpertThreadScratch expert_thread_scratch(DType type, int64_t k, const KernelParams& params) {
  ExpertThreadScratch scratch;
  scratch.sums = static_cast<uint64_t>(kExpertBand * kPartTiles * kTileBytes);
  scratch.heads = scratch.sums +
                  static_cast<uint64_t>(params.expert_tile / kTileSide * kExpertBand * kTileBytes);
  scratch.total = scratch.products = scratch.filled = scratch.heads;
  if (!is_packed(type)) return scratch;
  constexpr uint64_t kHeads = kPartTiles / 2 * 2 * kTileSide * sizeof(float);
  scratch.products = scratch.heads + kExpertBand * kHeads;
  scratch.filled = scratch.products + kPartTiles * kTileBytes;
  scratch.total = scratch.filled + aligned(kTileSide * weight_row_bytes(type, k));
  return scratch;
}

KernelParams effective_expert_params(const OpCall& call, const KernelParams& wanted,
                                     const Device& /*device*/) {
  KernelParams params;
  const bool all = call.m == call.groups;
  const bool fills = round_up(call.rows, kSlotBlock) == round_up(call.rows, wanted.expert_tile);
  params.skip_empty = wanted.skip_empty || (all && fills);
  // The same slot tiles where one of the smaller of the two has all rows.
  if (!params.skip_empty || call.rows > std::min(wanted.expert_tile, params.expert_tile)) {
    params.expert_tile = wanted.expert_tile;
  }
  return params;
}

}  // namespace reckon::kernels::cpu
