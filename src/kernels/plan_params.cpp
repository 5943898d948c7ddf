#include "kernels/plan_params.h"

#include <algorithm>
#include <array>
#include <string>

#include "kernels/plan_class.h"

namespace reckon::kernels::planning {
namespace {

// The parameters that the switches ask for, each with its setting and what it means that a variant
// does not know it.
struct Wanted {
  KernelParams params;
  std::string settings;  // "prefill.tile_order=band8, prefill.tile=wide"
};

KernelParams wanted_expert_params(const SwitchSet& switches) {
  KernelParams params;
  params.expert_tile = static_cast<int32_t>(switches.integer("moe.expert_tile"));
  params.skip_empty = switches.get("moe.skip_empty") == "on";
  return params;
}

// "moe.expert_tile=64, moe.skip_empty=off": the settings by which two sets of parameters differ.
std::string expert_settings(const SwitchSet& switches, const KernelParams& a,
                            const KernelParams& b) {
  std::string settings;
  if (a.expert_tile != b.expert_tile) {
    settings = "moe.expert_tile=" + switches.get("moe.expert_tile");
  }
  if (a.skip_empty != b.skip_empty) {
    settings += std::string(settings.empty() ? "" : ", ") + "moe.skip_empty=off";
  }
  return settings;
}

// For matmuls of experts in prefill.
void apply_expert_params(const OpCall& call, const SwitchSet& switches, const Device& device,
                         Choice& choice) {
  const Variant& row = *choice.variant;
  const KernelParams wanted = wanted_expert_params(switches);
  if (row.effective != nullptr) choice.params = row.effective(call, wanted, device);
  const std::string kept = expert_settings(switches, choice.params, {});
  const std::string lost = expert_settings(switches, choice.params, wanted);
  if (!kept.empty()) choice.reason += "; " + kept;
  if (lost.empty()) return;
  const std::string why = row.effective == nullptr || row.tiling == nullptr
                              ? std::string(row.name) + " has no expert tiles"
                              : row.tiling(call);
  choice.rule = "no-effect";
  choice.reason = lost + " changes nothing: " + why + "; " + choice.reason;
}

Wanted wanted_params(const SwitchSet& switches, const OpCall& call) {
  Wanted wanted;
  if (call.phase != Phase::kPrefill || !multiplies(call.op)) return wanted;
  const auto note = [&](const std::string& key) {
    if (!wanted.settings.empty()) wanted.settings += ", ";
    wanted.settings += key + "=" + switches.get(key);
  };
  if (call.op == Op::kMatmul && switches.get("prefill.tile_order") == "band8") {
    wanted.params.tile_order = TileOrder::kBand8;
    note("prefill.tile_order");
  }
  const std::string tile = switches.get("prefill.tile");
  for (const TileShape shape : {TileShape::kTall, TileShape::kWide, TileShape::kSquare}) {
    if (tile != tile_shape_name(shape)) continue;
    wanted.params.tile = shape;
    note("prefill.tile");
  }
  return wanted;
}

// Sets the effective parameters and says so where one was asked for.
void apply_matmul_params(const OpCall& call, const Wanted& wanted, const Device& device,
                         Choice& choice) {
  const Variant& row = *choice.variant;
  choice.params =
      row.effective == nullptr ? KernelParams{} : row.effective(call, wanted.params, device);
  if (wanted.settings.empty()) return;
  if (choice.params == wanted.params) {
    choice.reason += "; " + wanted.settings;
    return;
  }
  const bool order = wanted.params.tile_order != choice.params.tile_order;
  const std::string why = row.effective == nullptr
                              ? std::string(row.name) + (order ? " has no bands" : " has no tiles")
                          : !order                ? "auto takes the same tile"
                          : row.tiling == nullptr ? shape_text(call) + " is one band"
                                                  : row.tiling(call);
  choice.rule = "no-effect";
  choice.reason =
      order ? "prefill.tile_order=band8 walks the same order as row: " + why + "; " + choice.reason
            : wanted.settings + " changes nothing: " + why + "; " + choice.reason;
}

}  // namespace

void apply_params(const OpCall& call, const SwitchSet& switches, const Device& device,
                  Choice& choice) {
  if (is_of_experts(call.op) && call.phase == Phase::kPrefill) {
    apply_expert_params(call, switches, device, choice);
  } else {
    apply_matmul_params(call, wanted_params(switches, call), device, choice);
  }
}

bool has_tiles(const Variant& row, const OpCall& call, const Device& device) {
  if (row.effective == nullptr) return false;
  return std::ranges::any_of(std::array{TileShape::kTall, TileShape::kWide, TileShape::kSquare},
                             [&](TileShape shape) {
                               KernelParams wanted;
                               wanted.tile = shape;
                               return row.effective(call, wanted, device).tile != TileShape::kAuto;
                             });
}

}  // namespace reckon::kernels::planning
