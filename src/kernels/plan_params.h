// The effective parameters of a choice: what of the switches' wishes its kernel can follow. A part
// of the plan (plan.h), pure like it.
#pragma once

#include "kernels/plan.h"

namespace reckon::kernels::planning {

// Sets choice.params and says in choice.reason what was asked for; rule "no-effect" where it makes
// no difference.
void apply_params(const OpCall& call, const SwitchSet& switches, const Device& device,
                  Choice& choice);

// Whether the kernel has several shapes of tiles for the call.
[[nodiscard]] bool has_tiles(const Variant& row, const OpCall& call, const Device& device);

}  // namespace reckon::kernels::planning
