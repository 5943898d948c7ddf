#include "adapters/engine_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "adapters/busy_work.h"
#include "adapters/environment.h"
#include "adapters/kernel_use.h"
#include "base/hash.h"
#include "engine/generate.h"
#include "engine/kl.h"
#include "engine/plan_notes.h"
#include "engine/random_tokens.h"
#include "engine/session.h"
#include "kernels/trace.h"

namespace reckon::adapters {
namespace {

using experiment::Arm;
using experiment::Measurement;
using experiment::Prediction;
using experiment::Subject;
using experiment::Workload;

experiment::DispatchRow to_text(const kernels::DispatchRow& row) {
  return {row.phase, row.op, row.shape, row.variant, row.params, row.source_hash};
}

// The prompt cut, or repeated, to the asked length, so that one text serves every size.
std::vector<int32_t> fit_prompt(std::vector<int32_t> tokens, int64_t wanted) {
  if (wanted == 0 || tokens.empty()) return tokens;
  const size_t text_length = tokens.size();
  tokens.resize(static_cast<size_t>(wanted));
  for (size_t i = text_length; i < tokens.size(); ++i) tokens[i] = tokens[i - text_length];
  return tokens;
}

Result<std::vector<int32_t>> prompt_tokens(const engine::LoadedModel& model,
                                           const Workload& workload) {
  if (workload.prompt.empty()) {
    if (workload.prompt_tokens == 0) {
      return usage_error("the workload has no prompt: expected a text, or how many random tokens");
    }
    return engine::random_tokens(workload.prompt_tokens, model.model().info().vocabulary);
  }
  TRY_ASSIGN(const Tokenizer* tokenizer, model.tokenizer());
  std::vector<int32_t> tokens = tokenizer->encode(workload.prompt, Special::kIgnore);
  if (tokens.empty()) return usage_error("the workload's prompt is empty");
  return fit_prompt(std::move(tokens), workload.prompt_tokens);
}

std::string hash_tokens(const std::vector<int32_t>& tokens) {
  return hash_hex(std::string_view(reinterpret_cast<const char*>(tokens.data()),
                                   tokens.size() * sizeof(int32_t)));
}

// Tokens a second over `tokens` tokens in `elapsed_ns`, both above zero.
double rate(int64_t tokens, int64_t elapsed_ns) {
  return static_cast<double>(tokens) * 1e9 / static_cast<double>(elapsed_ns);
}

std::map<std::string, double> metrics_of(const engine::Generation& generation,
                                         uint64_t peak_bytes) {
  std::map<std::string, double> metrics;
  metrics["prefill_tok_per_s"] = rate(generation.prompt_tokens, generation.prefill_ns);
  metrics["prefill_ms"] = static_cast<double>(generation.prefill_ns) / 1e6;
  const auto steps = static_cast<int64_t>(generation.tokens.size()) - 1;
  if (steps > 0) {
    metrics["decode_tok_per_s"] = rate(steps, generation.decode_ns);
    metrics["ms_per_token"] =
        static_cast<double>(generation.decode_ns) / 1e6 / static_cast<double>(steps);
    // A pass decodes one token or verifies several; what drafts them and picks counts as its time.
    metrics["ms_per_pass"] = static_cast<double>(generation.decode_ns) / 1e6 /
                             static_cast<double>(generation.decode_passes);
  }
  metrics["peak_bytes"] = static_cast<double>(peak_bytes);
  return metrics;
}

// What the arm may take, named as a reader of the queue knows it.
Result<engine::Budget> arm_budget(const engine::LoadedModel& model, const Arm& arm) {
  TRY_ASSIGN(engine::Budget budget,
             engine::detect_budget(std::nullopt, model.allocated_bytes(), model.backend()));
  if (arm.memory_limit_bytes && *arm.memory_limit_bytes < budget.bytes) {
    budget = {*arm.memory_limit_bytes, "the experiment's memory limit"};
  }
  return budget;
}

// Whatever is drafted: how many tokens a pass verifies, whether any runs one alone, and how far the
// model's own head follows, shows when drafts are made.
Result<std::vector<kernels::OpCall>> certain_calls(const engine::LoadedModel& model,
                                                   kernels::Planner& planner,
                                                   const engine::SessionPlan& plan,
                                                   engine::PassKinds passes) {
  const bool drafts = plan.shape.verify_rows > 0;
  std::vector<engine::PlannedCall> without_head;
  if (plan.shape.drafts) {
    passes.draft = false;
    TRY_ASSIGN(without_head, engine::plan_calls(model.model(), planner, plan.shape, passes));
  }
  std::vector<kernels::OpCall> calls;
  for (const engine::PlannedCall& one : plan.shape.drafts ? without_head : plan.calls) {
    if (!drafts || one.call.phase == kernels::Phase::kPrefill) calls.push_back(one.call);
  }
  return calls;
}

// What a session plans, which lists every kind of pass, since it does not know what it will be
// asked for; then with the calls of the workload's own passes in place of those.
Result<engine::SessionPlan> plan_workload(const engine::LoadedModel& model,
                                          kernels::Planner& planner,
                                          const engine::SessionShape& shape,
                                          const engine::PassKinds& passes) {
  TRY_ASSIGN(engine::SessionPlan plan,
             engine::plan_session(model.model(), planner, shape, {}, model.backend()));
  TRY_ASSIGN(plan.calls, engine::plan_calls(model.model(), planner, plan.shape, passes));
  return plan;
}

}  // namespace

EngineRunner::EngineRunner(std::span<const kernels::Variant> variants) : variants_(variants) {}

Result<const engine::LoadedModel*> EngineRunner::open(const Workload& workload) {
  const std::string name =
      fmt::format("{} {} {}", workload.backend, workload.quant, workload.model);
  if (!open_model_ || open_name_ != name) {
    open_model_.reset();
    engine::ModelOptions options;
    TRY_ASSIGN(options.backend, kernels::open_backend(workload.backend));
    TRY_ASSIGN(options.quant, models::QuantScheme::parse(workload.quant));
    options.build.draft_head = true;  // an arm may draft by it
    options.layouts.both = true;      // the arms may read one or the other
    TRY_ASSIGN(open_model_, engine::LoadedModel::open(workload.model, options));
    open_name_ = name;
  }
  return open_model_.get();
}

kernels::Planner EngineRunner::planner_for(const Bound& bound) const {
  const kernels::Backend& backend = bound.model->backend();
  return {bound.switches, backend.device(), variants_.empty() ? backend.variants() : variants_};
}

Result<EngineRunner::Bound> EngineRunner::bind(const Workload& workload, const Arm& arm) {
  Bound bound;
  for (const auto& [key, value] : arm.switches) {
    if (key == kBusySwitch) {
      TRY_ASSIGN(bound.busy_percent, parse_busy_percent(value));
    } else {
      TRY(bound.switches.set(key, value));
    }
  }
  TRY_ASSIGN(bound.model, open(workload));
  TRY_ASSIGN(bound.prompt, prompt_tokens(*bound.model, workload));
  const auto needed = static_cast<int64_t>(bound.prompt.size()) + workload.generate_tokens;
  if (workload.context != 0 && workload.context < needed) {
    return usage_error(fmt::format(
        "the workload's context of {} cannot hold {} prompt tokens and {} generated ones",
        workload.context, bound.prompt.size(), workload.generate_tokens));
  }
  bound.shape.capacity = workload.context != 0 ? workload.context : needed;
  return bound;
}

Result<Subject> EngineRunner::describe(const Workload& workload, const Arm& base) {
  TRY_ASSIGN(const Bound bound, bind(workload, base));
  const kernels::Planner planner = planner_for(bound);
  const kernels::Device& device = bound.model->backend().device();
  const Checkpoint& checkpoint = bound.model->checkpoint();
  Subject subject;
  const bool cpu = device.backend == "cpu";
  subject.device = {
      {"vendor", device.vendor},
      {"isa", cpu ? std::string(kernels::isa_name(device.best_isa)) : device.features},
      {"units", std::to_string(device.cores)},
      {"memory_bytes", std::to_string(device.memory_bytes)}};
  subject.device_name = device.name;
  subject.backend = device.backend;
  subject.model_name = checkpoint.display_name();
  subject.model_family = bound.model->model().info().family;
  subject.model_shape_hash = checkpoint.shape_hash();
  subject.model_hash = checkpoint.content_hash();
  subject.weight_format = bound.model->weight_format();
  subject.chunk = planner.prefill_chunk();
  subject.threads = planner.threads();
  subject.prompt_tokens = static_cast<int64_t>(bound.prompt.size());
  subject.prompt_hash = hash_tokens(bound.prompt);
  return subject;
}

Result<Prediction> EngineRunner::predict(const Workload& workload, const Arm& arm) {
  TRY_ASSIGN(const Bound bound, bind(workload, arm));
  kernels::Planner planner = planner_for(bound);
  const int64_t chunk = planner.prefill_chunk();
  engine::PassKinds passes;
  passes.prefill_rows = engine::chunk_rows(static_cast<int64_t>(bound.prompt.size()), chunk);
  passes.decode = workload.generate_tokens > 1;
  passes.pick = workload.generate_tokens > 0;
  TRY_ASSIGN(const engine::SessionPlan plan,
             plan_workload(*bound.model, planner, bound.shape, passes));
  TRY_ASSIGN(const std::vector<kernels::OpCall> always,
             certain_calls(*bound.model, planner, plan, passes));
  Prediction prediction;
  for (const engine::PlannedCall& planned : plan.calls) {
    const bool certain = std::ranges::find(always, planned.call) != always.end();
    prediction.rows.push_back({to_text(kernels::predicted_row(planned.call, *planned.choice)),
                               planned.choice->reason, certain});
  }
  if (bound.busy_percent > 0 && passes.decode) {
    prediction.rows.push_back({busy_row(bound.busy_percent), std::string(kBusySwitch), true});
  }
  TRY_ASSIGN(const engine::Budget budget, arm_budget(*bound.model, arm));
  prediction.planned_bytes = plan.total_bytes;
  prediction.budget_bytes = budget.bytes;
  prediction.budget_source = budget.source;
  const Status fits =
      engine::check_budget(bound.model->model(), planner, plan, budget, bound.model->backend());
  prediction.fits = fits.ok();
  if (!fits.ok()) prediction.refusal = fits.error().message;
  for (const MemoryTerm& term : plan.terms) {
    prediction.terms.push_back({std::string(memory_tag_name(term.tag)), term.name, term.bytes});
  }
  std::stable_sort(prediction.terms.begin(), prediction.terms.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  prediction.notes = engine::tile_rule_notes(plan.calls);
  if (workload.phase == "prefill") prediction.sources = engine::tile_rule_hashes(plan.calls);
  for (const engine::PlannedCall& planned : plan.calls) {
    if (planned.choice->layout == kernels::WeightLayout::kNone) continue;
    prediction.weight_layout = std::string(kernels::layout_name(planned.choice->layout));
    break;
  }
  return prediction;
}

Result<EngineRunner::Generated> EngineRunner::generate(const Workload& workload, const Arm& arm,
                                                       const Bound& bound, int64_t busy_ns) {
  engine::SessionOptions options;
  options.switches = bound.switches;
  options.shape = bound.shape;
  options.variants = variants_;
  if (arm.memory_limit_bytes) options.memory_limit = std::to_string(*arm.memory_limit_bytes);
  Generated generated;
  TRY_ASSIGN(generated.session, engine::Session::create(*bound.model, options));
  if (busy_ns > 0) {
    generated.session->observe([busy_ns](int64_t layer, const Activation& hidden) {
      if (layer == 0 && hidden.rows == 1) do_busy_work(busy_ns);
    });
  }
  engine::GenerateOptions generate_options;
  generate_options.max_tokens = workload.generate_tokens;
  TRY_ASSIGN(generated.generation,
             engine::generate(*generated.session, bound.prompt, generate_options, nullptr, {}));
  return generated;
}

Result<int64_t> EngineRunner::busy_ns(const Workload& workload, const Arm& arm,
                                      const Bound& bound) {
  if (bound.busy_percent == 0) return int64_t{0};
  std::string key = open_name_;
  for (const auto& [name, value] : bound.switches.changed()) key += " " + name + "=" + value;
  if (!step_ns_.contains(key)) {
    TRY_ASSIGN(const Generated plain, generate(workload, arm, bound, 0));
    const int64_t passes = std::max<int64_t>(plain.generation.decode_passes, 1);
    step_ns_[key] = plain.generation.decode_ns / passes;
  }
  return step_ns_[key] * bound.busy_percent / 100;
}

Result<Measurement> EngineRunner::measure(const Workload& workload, const Arm& arm) {
  TRY_ASSIGN(const Bound bound, bind(workload, arm));
  TRY_ASSIGN(const int64_t busy, busy_ns(workload, arm, bound));
  TRY_ASSIGN(const Generated generated, generate(workload, arm, bound, busy));
  Measurement measurement;
  measurement.peak_bytes = generated.session->arenas().peak_bytes();
  measurement.metrics = metrics_of(generated.generation, measurement.peak_bytes);
  measurement.tokens = generated.generation.tokens;
  measurement.margins = generated.generation.margins;
  const std::vector<kernels::TraceCount> rows = generated.session->trace().rows();
  for (const kernels::TraceCount& counted : rows) {
    measurement.observed.push_back(to_text(counted.row));
  }
  measurement.kernel_use = kernel_use(rows, workload.phase);
  if (busy > 0 && workload.generate_tokens > 1) {
    measurement.observed.push_back(busy_row(bound.busy_percent));
    std::sort(measurement.observed.begin(), measurement.observed.end());
  }
  return measurement;
}

Result<experiment::Quality> EngineRunner::compare_quality(const Workload& workload, const Arm& base,
                                                          const Arm& arm,
                                                          std::span<const int32_t> generated) {
  std::unique_ptr<engine::Session> sessions[2];
  std::vector<int32_t> prompt;
  for (const Arm* side : {&base, &arm}) {
    TRY_ASSIGN(Bound bound, bind(workload, *side));
    bound.shape.logit_rows = models::LogitRows::kAll;
    engine::SessionOptions options;
    options.switches = bound.switches;
    options.shape = bound.shape;
    options.variants = variants_;
    TRY_ASSIGN(sessions[side == &base ? 0 : 1], engine::Session::create(*bound.model, options));
    prompt = std::move(bound.prompt);
  }
  TRY_ASSIGN(engine::KlReport report, engine::compare_kl(*sessions[0], *sessions[1], prompt));
  TRY(engine::compare_kl_decode(*sessions[0], *sessions[1], generated, report));
  experiment::Quality quality;
  quality.tokens = report.tokens;
  quality.mean_kl = report.mean_kl;
  quality.largest_kl = report.largest_kl;
  quality.top1_equal = report.top1_equal;
  if (report.predicted > 0) {
    quality.base_perplexity = std::exp(report.reference_loss);
    quality.arm_perplexity = std::exp(report.variant_loss);
  }
  return quality;
}

nlohmann::json EngineRunner::environment() {
  return environment_record(open_model_ ? open_model_->backend().device()
                                        : kernels::cpu_backend().device());
}

std::vector<experiment::Runner::MetricInfo> EngineRunner::metrics() const {
  constexpr int64_t kOneStep = 2;  // the first token comes with the prefill
  return {{"decode_tok_per_s", "tok/s", true, "decode", true, kOneStep},
          {"ms_per_token", "ms", false, "decode", true, kOneStep},
          {"ms_per_pass", "ms", false, "decode", true, kOneStep},
          {"prefill_tok_per_s", "tok/s", true, "prefill"},
          {"prefill_ms", "ms", false, "prefill"},
          {"peak_bytes", "B", false, "", false}};
}

Status EngineRunner::check_switch(const std::string& key, const std::string& value) {
  if (key == kBusySwitch && busy_work_allowed()) {
    TRY(parse_busy_percent(value));
    return {};
  }
  return kernels::SwitchSet().set(key, value);
}

std::string EngineRunner::default_value(const std::string& key) {
  if (key == kBusySwitch) return "0";
  const kernels::SwitchInfo* info = kernels::find_switch(key);
  return info == nullptr ? "" : info->default_value;
}

}  // namespace reckon::adapters
