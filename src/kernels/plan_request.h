// Switches that put another kernel in the place of what the plan has decided without them. A part
// of the plan (plan.h), pure like it.
#pragma once

#include <span>
#include <string>

#include "kernels/plan.h"
#include "kernels/plan_class.h"

namespace reckon::kernels::planning {

// prefill.split_k: a row that cuts K in the place of one of the same class, which reads the same
// weights with the same instructions.
void apply_split_k(std::span<const Variant> table, const SwitchSet& switches, const OpCall& call,
                   const IsaLimit& limit, Choice& choice);

// decode.verify_kernel, beyond the class that demand_of() asks for.
void apply_verify_kernel(std::span<const Variant> table, const SwitchSet& switches,
                         const OpCall& call, const IsaLimit& limit, Choice& choice);

}  // namespace reckon::kernels::planning
