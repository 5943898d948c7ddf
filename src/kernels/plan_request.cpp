#include "kernels/plan_request.h"

#include <algorithm>

namespace reckon::kernels::planning {
namespace {

const Variant* row_of_use(std::span<const Variant> table, Op op, Use use, NumericsClass numerics) {
  const auto found = std::ranges::find_if(table, [&](const Variant& row) {
    return row.op == op && row.use == use && row.numerics == numerics;
  });
  return found == table.end() ? nullptr : &*found;
}

// What a switch says of a call that the plan has decided without it: the row that it asks for, or
// why it changes nothing.
struct Request {
  const Variant* row = nullptr;
  std::string rule;
  std::string clause;  // names the switch
};

void apply(const Request& request, Choice& choice) {
  if (request.rule.empty()) return;
  if (request.row != nullptr) choice.variant = request.row;
  choice.rule = request.rule;
  choice.reason = request.clause + "; " + choice.reason;
}

Request split_k_request(std::span<const Variant> table, const SwitchSet& switches,
                        const OpCall& call, const IsaLimit& limit, const Variant& base) {
  const std::string value = switches.get("prefill.split_k");
  if (value == "off" || call.phase != Phase::kPrefill || !multiplies(call.op)) return {};
  const std::string setting = "prefill.split_k=" + value;
  const auto keeps = [&](const std::string& why) -> Request {
    return {nullptr, "no-effect", setting + " changes nothing: " + why};
  };
  const NumericsClass numerics = value == "fast" ? NumericsClass::kFast : NumericsClass::kExact;
  const Variant* row = row_of_use(table, call.op, Use::kSplitK, numerics);
  if (row == nullptr) return keeps("no kernel of this device does it");
  if (base.numerics != numerics) {
    return keeps(std::string(base.name) + " is of class " +
                 std::string(numerics_name(base.numerics)) +
                 ", by prefill.numerics=" + switches.get("prefill.numerics"));
  }
  const std::string why = rejection(*row, call, limit);
  if (!why.empty()) return keeps(std::string(row->name) + ": " + why);
  const std::string declined = row->declines == nullptr ? "" : row->declines(call);
  if (!declined.empty()) return keeps(std::string(row->name) + ": " + declined);
  if (row->layout != base.layout || row->isa != base.isa) {
    return keeps(std::string(row->name) + " does not stand in for " + base.name);
  }
  const std::string parts = row->tiling(call);
  if (row->splits(call) < 2) return keeps(parts);
  return {row, "split-k", setting + ": " + parts + ", in place of " + base.name};
}

Request verify_request(std::span<const Variant> table, const SwitchSet& switches,
                       const OpCall& call, const IsaLimit& limit, const Choice& choice) {
  const std::string value = switches.get("decode.verify_kernel");
  if (value == "exact" || !is_verified(call)) return {};
  const std::string setting = "decode.verify_kernel=" + value;
  const auto keeps = [&](const char* rule, const std::string& why) -> Request {
    return {nullptr, rule, setting + " changes nothing: " + why};
  };
  if (choice.rule == "forced") return keeps("no-effect", "another switch names the kernel");
  if (switches.get("numerics") == "reference") return keeps("no-effect", "numerics=reference");
  if (value == "fast") {
    const std::string most = switches.get("decode.multi_max");
    if (call.rows <= switches.integer("decode.multi_max")) {
      return {nullptr, "multi-row",
              "rows up to " + most + " stay on the exact multi-row kernel: decode.multi_max=" +
                  most + " (" + setting + ")"};
    }
    const bool is_fast = choice.variant->numerics == NumericsClass::kFast;
    return {nullptr, is_fast ? "verify-kernel" : "no-effect", setting};
  }
  const Variant* row = row_of_use(table, call.op, Use::kStream, NumericsClass::kFast);
  if (row == nullptr) return keeps("no-effect", "no kernel of this device does it");
  const std::string why = rejection(*row, call, limit);
  if (!why.empty()) return keeps("stream-rows", why);
  return {row, "verify-kernel", setting};
}

}  // namespace

void apply_split_k(std::span<const Variant> table, const SwitchSet& switches, const OpCall& call,
                   const IsaLimit& limit, Choice& choice) {
  apply(split_k_request(table, switches, call, limit, *choice.variant), choice);
}

void apply_verify_kernel(std::span<const Variant> table, const SwitchSet& switches,
                         const OpCall& call, const IsaLimit& limit, Choice& choice) {
  apply(verify_request(table, switches, call, limit, choice), choice);
}

}  // namespace reckon::kernels::planning
