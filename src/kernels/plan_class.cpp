#include "kernels/plan_class.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tensor/dtype.h"

namespace reckon::kernels::planning {
namespace {

// Whether the plan may take the row unasked, if it can run the call.
bool is_candidate(const Variant& row, const OpCall& call, const IsaLimit& limit) {
  return row.op == call.op && row.use == Use::kOfClass && limit.widest <= row.widest;
}

// "no fast variant of matmul for q4_1", and what stood in the way where the table has one.
std::string absence(std::span<const Variant> table, const OpCall& call, NumericsClass numerics,
                    const IsaLimit& limit) {
  std::string text =
      "no " + std::string(numerics_name(numerics)) + " variant of " + std::string(op_name(call.op));
  if (call.op == Op::kMatmul || call.op == Op::kEmbedding || is_of_experts(call.op)) {
    text += " for " + std::string(dtype_name(call.weight_type));
  }
  const Variant* first = nullptr;
  for (const Variant& row : table) {
    if (!is_candidate(row, call, limit) || row.numerics != numerics) continue;
    if (first == nullptr) first = &row;
    // One that could run the call says more than one that could not.
    if (row.declines != nullptr && rejection(row, call, limit).empty()) {
      return text + " is taken (" + row.name + ": " + row.declines(call) + ")";
    }
  }
  if (first == nullptr) return text;
  return text + " (" + first->name + ": " + rejection(*first, call, limit) + ")";
}

std::string class_reason(std::span<const Variant> table, const OpCall& call, const Variant& row,
                         const Demand& demand, const IsaLimit& limit) {
  if (row.numerics == demand.loosest) {
    return std::string(numerics_name(row.numerics)) + " class: " + demand.because;
  }
  const std::string missing = absence(table, call, demand.loosest, limit);
  if (demand.loosest == NumericsClass::kFast) {
    return missing + ": " + std::string(numerics_name(row.numerics)) + " is stricter" +
           (call.phase == Phase::kVerify ? " (" + demand.because + ")" : "");
  }
  return missing + ": reference rows are independent of each other, which is exact, too (" +
         demand.because + ")";
}

std::string isa_reason(const OpCall& call, const Variant& row, const IsaLimit& limit) {
  if (!limit.is_auto && row.isa < limit.widest) {
    return "; " + limit.setting + ", but there is no " + std::string(isa_name(limit.widest)) +
           " variant of " + std::string(op_name(call.op)) + " for this call";
  }
  if (row.numerics == NumericsClass::kReference) return "";
  if (!limit.is_auto) return "; " + limit.setting;
  return "; " + std::string(isa_name(row.isa)) + " is the widest of " + limit.setting;
}

}  // namespace

Demand demand_of(const SwitchSet& switches, const OpCall& call) {
  if (switches.get("numerics") == "reference") {
    return {NumericsClass::kReference, "numerics=reference"};
  }
  if (is_verified(call) && switches.get("decode.verify_kernel") == "fast" &&
      call.rows > switches.integer("decode.multi_max")) {
    return {NumericsClass::kFast, "decode.verify_kernel=fast takes more than decode.multi_max=" +
                                      switches.get("decode.multi_max") + " rows"};
  }
  if (call.phase != Phase::kPrefill) {
    return {NumericsClass::kExact, std::string(phase_name(call.phase))};
  }
  const std::string numerics = switches.get("prefill.numerics");
  return {numerics == "fast" ? NumericsClass::kFast : NumericsClass::kExact,
          "prefill.numerics=" + numerics};
}

bool is_verified(const OpCall& call) {
  const std::vector<Op>& ops = find_switch("decode.verify_kernel")->reach_ops;
  return call.phase == Phase::kVerify && std::ranges::find(ops, call.op) != ops.end();
}

bool multiplies(Op op) {
  return op == Op::kMatmul || op == Op::kMatmulGroup || op == Op::kMatmulSwiglu;
}

bool is_of_experts(Op op) {
  return op == Op::kExpertMatmulSwiglu || op == Op::kExpertMatmulCombine;
}

Result<IsaLimit> isa_limit(const SwitchSet& switches, const Device& device) {
  const std::string value = switches.get("cpu.isa");
  IsaLimit limit{device.best_isa, "cpu.isa=" + value, value == "auto"};
  if (limit.is_auto) return limit;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa_name(isa) == value) limit.widest = isa;
  }
  if (limit.widest > device.best_isa) {
    return unsupported(limit.setting + ": this machine (" + device.name + ") has only " +
                       std::string(isa_name(device.best_isa)));
  }
  return limit;
}

Forcing forcing(const SwitchSet& switches, const OpCall& call) {
  if (call.phase == Phase::kPrefill && multiplies(call.op)) {
    Forcing of_prefill{"prefill.matmul", switches.get("prefill.matmul")};
    if (of_prefill.variant != "auto") return of_prefill;
  }
  if (call.phase == Phase::kPrefill && is_of_experts(call.op)) {
    Forcing of_prefill{"prefill.expert_matmul", switches.get("prefill.expert_matmul")};
    if (of_prefill.variant != "auto") return of_prefill;
  }
  std::string key = "kernel." + std::string(op_name(call.op));
  std::string variant = switches.get(key);
  return {std::move(key), std::move(variant)};
}

std::string rejection(const Variant& row, const OpCall& call, const IsaLimit& limit) {
  if (row.isa > limit.widest) {
    return "needs " + std::string(isa_name(row.isa)) + ", " + limit.setting + " allows " +
           std::string(isa_name(limit.widest)) + " here";
  }
  if (call.panels_alone && row.layout != WeightLayout::kPanels) {
    return "it reads a weight's rows, and of this one panels alone were kept, as the switches that "
           "the model was loaded with asked for";
  }
  return row.supports == nullptr ? "" : row.supports(call);
}

const Variant* best_row(std::span<const Variant> table, const OpCall& call, const Demand& demand,
                        const IsaLimit& limit) {
  const auto rank = [&](const Variant& row) {
    return std::tuple(row.numerics, row.isa, row.preference == nullptr ? 0 : row.preference(call));
  };
  const Variant* best = nullptr;
  for (const Variant& row : table) {
    if (!is_candidate(row, call, limit) || row.numerics > demand.loosest) continue;
    if (best != nullptr && rank(row) <= rank(*best)) continue;
    if (row.declines != nullptr && !row.declines(call).empty()) continue;
    if (rejection(row, call, limit).empty()) best = &row;
  }
  return best;
}

std::string row_reason(std::span<const Variant> table, const OpCall& call, const Variant& row,
                       const Demand& demand, const IsaLimit& limit) {
  return class_reason(table, call, row, demand, limit) + isa_reason(call, row, limit);
}

Error no_kernel(std::span<const Variant> table, const OpCall& call, const Demand& demand,
                const IsaLimit& limit) {
  std::string message = "no kernel runs " + std::string(op_name(call.op)) + " " + shape_text(call) +
                        " (" + demand.because + ")";
  if (std::ranges::find(table, call.op, &Variant::op) == table.end()) {
    return failed(message + "; this device has no kernels for this op");
  }
  for (const Variant& row : table) {
    if (!is_candidate(row, call, limit) || row.numerics > demand.loosest) continue;
    message += std::string("; ") + row.name + ": " + rejection(row, call, limit);
  }
  return failed(message);
}

Result<const Variant*> forced_row(std::span<const Variant> table, const OpCall& call,
                                  const std::string& key, const std::string& name,
                                  const Demand& demand, const IsaLimit& limit) {
  const std::string setting = key + "=" + name;
  for (const Variant& row : table) {
    if (row.op != call.op || row.name != name) continue;
    const std::string why = rejection(row, call, limit);
    if (!why.empty()) {
      const ErrorKind kind = row.isa > limit.widest ? ErrorKind::kUnsupported : ErrorKind::kUsage;
      return Error{kind, setting + " cannot run " + std::string(phase_name(call.phase)) + " " +
                             shape_text(call) + ": " + why};
    }
    if (row.numerics > demand.loosest) {
      return usage_error(setting + " is of class " + std::string(numerics_name(row.numerics)) +
                         ", but " + demand.because + " needs " +
                         std::string(numerics_name(demand.loosest)));
    }
    return &row;
  }
  return unsupported(setting + ": there is no such variant here");
}

}  // namespace reckon::kernels::planning
