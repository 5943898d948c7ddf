#include "kernels/plan.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

// What a phase asks for: the loosest class that will do, and the setting that says so.
struct Demand {
  NumericsClass loosest = NumericsClass::kExact;
  std::string because;
};

// Whether decode.verify_kernel decides on the call.
bool is_verified(const OpCall& call) {
  const std::vector<Op>& ops = find_switch("decode.verify_kernel")->reach_ops;
  return call.phase == Phase::kVerify && std::ranges::find(ops, call.op) != ops.end();
}

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

// The widest instruction set that may be used here.
struct IsaLimit {
  Isa widest = Isa::kScalar;
  std::string setting;  // "cpu.isa=auto"
  bool is_auto = true;
};

Result<IsaLimit> isa_limit(const SwitchSet& switches, const Device& device) {
  const std::string value = switches.get("cpu.isa");
  IsaLimit limit{device.best_isa, "cpu.isa=" + value, value == "auto"};
  if (limit.is_auto) return limit;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa_name(isa) == value) limit.widest = isa;
  }
  if (limit.widest > device.best_isa) {
    return usage_error(limit.setting + ": this machine (" + device.name + ") has only " +
                       std::string(isa_name(device.best_isa)));
  }
  return limit;
}

// "" where the row can run the call under the limit, else why not.
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

bool is_of_experts(Op op) {
  return op == Op::kExpertMatmulSwiglu || op == Op::kExpertMatmulCombine;
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
    if (row.op != call.op || row.numerics != numerics || row.use != Use::kOfClass) continue;
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

// The loosest class first (it is the fastest), then the widest instruction set, then table order.
const Variant* best_row(std::span<const Variant> table, const OpCall& call, const Demand& demand,
                        const IsaLimit& limit) {
  const auto rank = [&](const Variant& row) {
    return std::tuple(row.numerics, row.isa, row.preference == nullptr ? 0 : row.preference(call));
  };
  const Variant* best = nullptr;
  for (const Variant& row : table) {
    if (row.op != call.op || row.numerics > demand.loosest || row.use != Use::kOfClass) continue;
    if (best != nullptr && rank(row) <= rank(*best)) continue;
    if (row.declines != nullptr && !row.declines(call).empty()) continue;
    if (rejection(row, call, limit).empty()) best = &row;
  }
  return best;
}

Error no_kernel(std::span<const Variant> table, const OpCall& call, const Demand& demand,
                const IsaLimit& limit) {
  std::string message = "no kernel runs " + std::string(op_name(call.op)) + " " + shape_text(call) +
                        " (" + demand.because + ")";
  if (std::ranges::find(table, call.op, &Variant::op) == table.end()) {
    return failed(message + "; this device has no kernels for this op");
  }
  for (const Variant& row : table) {
    if (row.op != call.op || row.numerics > demand.loosest || row.use != Use::kOfClass) continue;
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
      return usage_error(setting + " cannot run " + std::string(phase_name(call.phase)) + " " +
                         shape_text(call) + ": " + why);
    }
    if (row.numerics > demand.loosest) {
      return usage_error(setting + " is of class " + std::string(numerics_name(row.numerics)) +
                         ", but " + demand.because + " needs " +
                         std::string(numerics_name(demand.loosest)));
    }
    return &row;
  }
  return usage_error(setting + ": there is no such variant here");
}

// Where KernelFn has the type of an op's functions: attention has one with and without a window.
size_t function_index(Op op) {
  if (op == Op::kWindowAttention) return static_cast<size_t>(Op::kAttention);
  return static_cast<size_t>(op) - (op > Op::kWindowAttention ? 1 : 0);
}

bool multiplies(Op op) {
  return op == Op::kMatmul || op == Op::kMatmulGroup || op == Op::kMatmulSwiglu;
}

bool reads_cache(Op op) {
  return op == Op::kAttention || op == Op::kWindowAttention || op == Op::kRopeAttention;
}

// The setting that names the variant for a call, "auto" where none does.
struct Forcing {
  std::string key;
  std::string variant;
};

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

// As apply_params(), for matmuls of experts in prefill.
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
void apply_params(const OpCall& call, const Wanted& wanted, const Device& device, Choice& choice) {
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

// prefill.split_k: a row that cuts K in the place of one of the same class, which reads the same
// weights with the same instructions.
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
  if (row->layout != base.layout || row->isa != base.isa) {
    return keeps(std::string(row->name) + " does not stand in for " + base.name);
  }
  const std::string parts = row->tiling(call);
  if (row->splits(call) < 2) return keeps(parts);
  return {row, "split-k", setting + ": " + parts + ", in place of " + base.name};
}

// decode.verify_kernel, beyond the class that demand_of() asks for.
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

// Whether the kernel has several shapes of tiles for the call.
bool has_tiles(const Variant& row, const OpCall& call, const Device& device) {
  if (row.effective == nullptr) return false;
  return std::ranges::any_of(std::array{TileShape::kTall, TileShape::kWide, TileShape::kSquare},
                             [&](TileShape shape) {
                               KernelParams wanted;
                               wanted.tile = shape;
                               return row.effective(call, wanted, device).tile != TileShape::kAuto;
                             });
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
    choice.reason = class_reason(table_, call, *choice.variant, demand, limit) +
                    isa_reason(call, *choice.variant, limit);
  }
  apply(split_k_request(table_, switches_, call, limit, *choice.variant), choice);
  apply(verify_request(table_, switches_, call, limit, choice), choice);
  const Variant& row = *choice.variant;
  if (is_of_experts(call.op) && call.phase == Phase::kPrefill) {
    apply_expert_params(call, switches_, device_, choice);
  } else {
    apply_params(call, wanted_params(switches_, call), device_, choice);
  }
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
