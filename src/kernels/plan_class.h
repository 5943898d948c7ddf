// Which rows of the table may run a call: what its phase asks for, what the instruction set allows,
// what a switch names. Parts of the plan (plan.h), pure like it.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "kernels/call.h"
#include "kernels/device.h"
#include "kernels/switches.h"
#include "kernels/variants.h"

namespace reckon::kernels::planning {

// What a phase asks for: the loosest class that will do, and the setting that says so.
struct Demand {
  NumericsClass loosest = NumericsClass::kExact;
  std::string because;
};

[[nodiscard]] Demand demand_of(const SwitchSet& switches, const OpCall& call);

// Whether decode.verify_kernel decides on the call.
[[nodiscard]] bool is_verified(const OpCall& call);
[[nodiscard]] bool multiplies(Op op);
[[nodiscard]] bool is_of_experts(Op op);

// The widest instruction set that may be used here.
struct IsaLimit {
  Isa widest = Isa::kScalar;
  std::string setting;  // "cpu.isa=auto"
  bool is_auto = true;
};

// kUnsupported where cpu.isa is more than the device has.
[[nodiscard]] Result<IsaLimit> isa_limit(const SwitchSet& switches, const Device& device);

// The setting that names the variant for a call, "auto" where none does.
struct Forcing {
  std::string key;
  std::string variant;
};

[[nodiscard]] Forcing forcing(const SwitchSet& switches, const OpCall& call);

// "" where the row can run the call under the limit, else why not.
[[nodiscard]] std::string rejection(const Variant& row, const OpCall& call, const IsaLimit& limit);

// The loosest class first (it is the fastest), then the widest instruction set, then what a row
// prefers, then table order. Null where no row runs the call.
[[nodiscard]] const Variant* best_row(std::span<const Variant> table, const OpCall& call,
                                      const Demand& demand, const IsaLimit& limit);

// Why it is that row, for people.
[[nodiscard]] std::string row_reason(std::span<const Variant> table, const OpCall& call,
                                     const Variant& row, const Demand& demand,
                                     const IsaLimit& limit);

// What to say where best_row() has none, with the reason of each row.
[[nodiscard]] Error no_kernel(std::span<const Variant> table, const OpCall& call,
                              const Demand& demand, const IsaLimit& limit);

// The row that a setting names; usage errors say why it cannot run the call, or may not.
// kUnsupported: the table has no such row, or it needs a wider instruction set than the limit.
[[nodiscard]] Result<const Variant*> forced_row(std::span<const Variant> table, const OpCall& call,
                                                const std::string& key, const std::string& name,
                                                const Demand& demand, const IsaLimit& limit);

}  // namespace reckon::kernels::planning
