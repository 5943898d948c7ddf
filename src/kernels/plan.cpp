#include "kernels/plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/plan_class.h"
#include "kernels/plan_params.h"
#include "kernels/plan_request.h"

namespace reckon::kernels {
namespace {

using namespace planning;

// Where KernelFn has the type of an op's functions: attention has one with and without a window.
size_t function_index(Op op) {
  if (op == Op::kWindowAttention) return static_cast<size_t>(Op::kAttention);
  return static_cast<size_t>(op) - (op > Op::kWindowAttention ? 1 : 0);
}

bool reads_cache(Op op) {
  return op == Op::kAttention || op == Op::kWindowAttention || op == Op::kRopeAttention;
}

// What prefill.tile_rules names, for this device.
std::shared_ptr<const TileRules> tile_rules_of(const SwitchSet& switches, const Device& device,
                                               int threads) {
  if (switches.get("prefill.tile_rules") == "shipped") {
    return shipped_tile_rules_for(tile_device(device, threads));
  }
  return switches.tile_rules();
}

// The ops that a composition stands for.
std::span<const Op> parts_of(Op op) {
  static constexpr Op kNorm[] = {Op::kAdd, Op::kRmsNorm};
  static constexpr Op kGroup[] = {Op::kMatmul};
  static constexpr Op kSwiglu[] = {Op::kMatmul, Op::kSwiglu};
  static constexpr Op kAttention[] = {Op::kRmsNorm, Op::kRope, Op::kAttention};
  switch (op) {
    case Op::kAddRmsNorm:
      return kNorm;
    case Op::kMatmulGroup:
      return kGroup;
    case Op::kMatmulSwiglu:
      return kSwiglu;
    case Op::kRopeAttention:
      return kAttention;
    default:
      return {};
  }
}

bool has_row(std::span<const Variant> table, Op op, const std::string& name) {
  return std::ranges::any_of(table,
                             [&](const Variant& row) { return row.op == op && row.name == name; });
}

const char* identity_of(std::span<const Variant> table, const Variant& variant) {
  for (const Variant& row : table) {
    if (row.op == variant.op && row.function == variant.function) return row.name;
  }
  return variant.name;
}

}  // namespace

Planner::Planner(SwitchSet switches, Device device, std::span<const Variant> table)
    : switches_(std::move(switches)), device_(std::move(device)), table_(table) {
  tile_rules_ = tile_rules_of(switches_, device_, threads());
  for (const Variant& row : table_) {
    // The alternatives of KernelFn stand in the order of Op.
    RECKON_CHECK(row.function.index() == function_index(row.op));
  }
}

bool Planner::fuses(const OpCall& call) const {
  if (const auto known = fuses_.find(call); known != fuses_.end()) return known->second;
  return fuses_.emplace(call, decide_fuses(call)).first->second;
}

bool Planner::decide_fuses(const OpCall& call) const {
  const Forcing own = forcing(switches_, call);
  if (own.variant == "parts") return false;
  if (own.key == "prefill.matmul") return has_row(table_, call.op, own.variant);
  if (own.variant != "auto") return true;  // choose() says whether it can
  if (std::ranges::find(table_, call.op, &Variant::op) == table_.end()) return false;
  for (const Op part : parts_of(call.op)) {
    if (switches_.get("kernel." + std::string(op_name(part))) != "auto") return false;
  }
  const Result<IsaLimit> limit = isa_limit(switches_, device_);
  return limit.ok() && best_row(table_, call, demand_of(switches_, call), *limit) != nullptr;
}

int Planner::threads() const {
  if (device_.backend != "cpu") return 1;
  const int64_t threads = switches_.integer("cpu.threads");
  return threads > 0 ? static_cast<int>(threads) : device_.cores;
}

bool Planner::in_graph(const OpCall& call) const {
  return device_.backend != "cpu" && call.phase != Phase::kPrefill && call.op != Op::kSample &&
         switches_.get("decode.graph") == "on";
}

int64_t Planner::prefill_chunk() const {
  const int64_t chunk = switches_.integer("prefill.chunk");
  if (chunk > 0) return chunk;
  return device_.backend == "cpu" ? 512 : 2048;
}

DType Planner::kv_type() const {
  const std::string type = switches_.get("kv.type");
  if (type != "auto") return type == "f16" ? DType::kF16 : DType::kF32;
  const bool exact_cache = device_.backend == "cpu" || switches_.get("numerics") == "reference";
  return exact_cache ? DType::kF32 : DType::kF16;
}

Result<const Choice*> Planner::choose(const OpCall& call) {
  if (const auto known = memo_.find(call); known != memo_.end()) return &known->second;
  TRY_ASSIGN(Choice choice, decide(call));
  return &memo_.emplace(call, std::move(choice)).first->second;
}

Result<Choice> Planner::decide(const OpCall& call) const {
  TRY_ASSIGN(const IsaLimit limit, isa_limit(switches_, device_));
  const Demand demand = demand_of(switches_, call);
  const Forcing forced = forcing(switches_, call);
  Choice choice;
  if (forced.variant != "auto") {
    TRY_ASSIGN(choice.variant, forced_row(table_, call, forced.key, forced.variant, demand, limit));
    choice.rule = "forced";
    choice.reason = "forced by " + forced.key;
  } else {
    choice.variant = best_row(table_, call, demand, limit);
    if (choice.variant == nullptr) {
      Error error = no_kernel(table_, call, demand, limit);
      const std::string kv_type = switches_.get("kv.type");
      if (kv_type == "auto" || !reads_cache(call.op)) return error;
      return usage_error("kv.type=" + kv_type + ": " + error.message);
    }
    choice.rule = "numerics-class";
    choice.reason = row_reason(table_, call, *choice.variant, demand, limit);
  }
  apply_split_k(table_, switches_, call, limit, choice);
  apply_verify_kernel(table_, switches_, call, limit, choice);
  const Variant& row = *choice.variant;
  apply_params(call, switches_, device_, choice);
  follow_tile_rules(call, choice);
  choice.params.graph = in_graph(call);
  choice.identity = identity_of(table_, row);
  choice.layout = row.layout;
  if (row.layout == WeightLayout::kPanels) choice.reason += "; reads the weight's panels";
  if (row.scratch_bytes != nullptr) {
    choice.scratch_bytes = row.scratch_bytes(call, choice.params, threads());
  }
  return choice;
}

// Where prefill.tile leaves the tile to the rules, and the kernel has several.
void Planner::follow_tile_rules(const OpCall& call, Choice& choice) const {
  if (tile_rules_ == nullptr || call.phase != Phase::kPrefill || !multiplies(call.op)) return;
  if (switches_.get("prefill.tile") != "auto" || !has_tiles(*choice.variant, call, device_)) return;
  choice.tile_rules = tile_rules_;
  choice.extrapolated =
      tile_rules_->outside(call, prefill_chunk(), tile_device(device_, threads()));
  const size_t number = tile_rules_->find(call);
  const std::string by =
      "prefill.tile_rules=" + switches_.get("prefill.tile_rules") + " (" + tile_rules_->name + ")";
  if (number == 0) {
    choice.reason += "; " + by + ": no row fits, the kernel's own tile";
  } else {
    const TileRule& rule = tile_rules_->rules[number - 1];
    KernelParams wanted = choice.params;
    wanted.tile = rule.tile;
    choice.params = choice.variant->effective(call, wanted, device_);
    // A switch that changes nothing stays the rule that decided.
    if (choice.rule != "no-effect") choice.rule = tile_rules_->name + ":" + std::to_string(number);
    choice.reason += "; " + by + " row " + std::to_string(number) + ", " + rule.text() + ": " +
                     std::string(tile_shape_name(rule.tile));
    if (choice.params.tile == TileShape::kAuto) choice.reason += ", as the kernel's own";
  }
  if (!choice.extrapolated.empty()) choice.reason += "; extrapolated: " + choice.extrapolated;
}

}  // namespace reckon::kernels
