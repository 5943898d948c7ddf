#include "experiment/rounds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "experiment/random.h"
#include "experiment/rows.h"

namespace reckon::experiment {
namespace {

// A program's time-out is its runner's to keep, which then clears up after it.
constexpr std::chrono::seconds kProgramGrace{20};

// How a sentence about an arm starts.
std::string phrase(const Arm& arm) {
  return arm.name == "base" ? "the base arm" : "the arm";
}

RoundEnd ended(RoundEnd::Kind kind, std::string detail, bool base_arm) {
  return RoundEnd{kind, std::move(detail), base_arm, std::nullopt};
}

std::string divergence_text(const ledger::Divergence& divergence) {
  std::string text = fmt::format("token {} is {} in the base arm and {} in the other",
                                 divergence.position, divergence.base_token, divergence.arm_token);
  if (divergence.margin) text += fmt::format(" (logit margin {:.3g})", *divergence.margin);
  return text;
}

// Pairs still to be measured, each with its place alone: warm-ups first.
std::deque<JournalPair> slots_of(const CollectedRound& round, const Experiment& experiment,
                                 const std::vector<measure::Order>& order) {
  std::deque<JournalPair> slots;
  const auto add = [&](int64_t index, bool warmup, bool arm_first) {
    JournalPair& slot = slots.emplace_back();
    slot.round = round.identity;
    slot.process = round.processes;
    slot.index = index;
    slot.warmup = warmup;
    slot.arm_first = arm_first;
  };
  for (int64_t i = 0; i < experiment.warmup_pairs; ++i) add(i, true, i % 2 == 1);
  for (const int64_t i : round.missing(experiment.pairs)) {
    add(i, false, order[static_cast<size_t>(i)] == measure::Order::kArmFirst);
  }
  return slots;
}

RoundEnd beyond_use(int64_t pairs, const std::string& last) {
  return ended(RoundEnd::Kind::kDisturbed,
               fmt::format("the machine was disturbed beyond use: {} of one round had to be "
                           "measured again; the latest because {}",
                           counted(pairs, "pair"), last),
               false);
}

}  // namespace

double RunContext::now() const {
  if (options.now_seconds) return options.now_seconds();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string RunContext::stop_reason() const {
  if (options.stop_requested && options.stop_requested()) return "it was interrupted";
  const bool spent = options.budget_seconds && now() - started >= *options.budget_seconds;
  return spent ? "the budget is spent" : "";
}

RoundIdentity RoundRunner::new_round(int number) const {
  RoundIdentity identity;
  identity.index = first_index_ + number;
  identity.started = utc_timestamp();
  const std::string key = journal_key(prepared_);
  identity.seed = context_.options.seed
                      ? hash64(fmt::format("{} {} {}", *context_.options.seed, key, identity.index))
                      : random_bits();
  Hasher hasher;
  hasher.add_field(key).add_field(identity.started);
  hasher.add_field(fmt::format("{} {} {}", ::getpid(), random_bits(), random_bits()));
  identity.id = "rd-" + hasher.base32(20);
  return identity;
}

Result<std::unique_ptr<RoundProcess>> RoundRunner::start_process() const {
  RoundProcess::Options options;
  options.command = context_.options.worker_command;
  options.timeout = std::chrono::seconds(prepared_.experiment.timeout_seconds);
  const Workload& workload = prepared_.experiment.workload;
  if (workload.command) options.timeout += kProgramGrace;
  const RoundJob job{workload, {prepared_.base, prepared_.arm}, context_.queue.runner};
  return RoundProcess::start(job, options);
}

Result<RoundEnd> RoundRunner::run(int number, int count, size_t slot) {
  const Experiment& experiment = prepared_.experiment;
  samples_ = collect(journal_.pairs());
  CollectedRound round;
  if (slot < samples_.rounds.size()) {
    round = samples_.rounds[slot];
  } else {
    round.identity = new_round(number);
  }
  if (round.missing(experiment.pairs).empty()) return RoundEnd{};
  if (std::string why = context_.stop_reason(); !why.empty()) {
    return ended(RoundEnd::Kind::kPaused, std::move(why), false);
  }
  TRY_ASSIGN(const std::unique_ptr<RoundProcess> process, start_process());
  TRY_ASSIGN(RoundEnd end, run_pairs(*process, round, number, count));
  if (end.kind != RoundEnd::Kind::kComplete) return end;
  if (const Status status = process->finish(); !status.ok()) {
    context_.progress.on_note(experiment, status.error().message);
  }
  return end;
}

Result<RoundEnd> RoundRunner::run_pairs(RoundProcess& process, const CollectedRound& round,
                                        int number, int count) {
  const Experiment& experiment = prepared_.experiment;
  const std::vector<measure::Order> order =
      measure::balanced_order(experiment.pairs, round.identity.seed);
  std::deque<JournalPair> slots = slots_of(round, experiment, order);
  Calm calm(context_, prepared_, process.pid());
  bool first = true;
  int64_t disturbed = 0;
  for (; !slots.empty(); slots.pop_front()) {
    const JournalPair slot = slots.front();
    TRY_ASSIGN(MeasuredPair measured, run_pair(process, slot, calm));
    if (measured.end) return *measured.end;
    JournalPair& pair = measured.pair;
    if (!std::exchange(first, false)) pair.environment = nlohmann::json::object();
    TRY(journal_.append(pair));
    samples_.add(pair);
    context_.progress.on_pair(
        {experiment.id, round.identity.id, number + 1, count, static_cast<int>(slot.index) + 1,
         slot.warmup ? experiment.warmup_pairs : experiment.pairs, slot.warmup, pair.base, pair.arm,
         prepared_.metric.unit, pair.seconds, pair.disturbed});
    if (!pair.disturbed.empty()) {
      if (!slot.warmup) {
        slots.push_back(slot);
        ++disturbed;
      }
      if (disturbed > experiment.pairs) return beyond_use(disturbed, pair.disturbed);
      if (std::string why = calm.wait(); !why.empty()) {
        return ended(RoundEnd::Kind::kPaused, std::move(why), false);
      }
    }
    std::string why = slots.size() > 1 ? context_.stop_reason() : "";
    if (!why.empty()) return ended(RoundEnd::Kind::kPaused, std::move(why), false);
  }
  return RoundEnd{};
}

Result<RoundRunner::MeasuredPair> RoundRunner::run_pair(RoundProcess& process,
                                                        const JournalPair& slot, Calm& calm) {
  TRY_ASSIGN(MeasuredPair measured, measure_pair(process, slot.arm_first));
  if (measured.end) return measured;
  JournalPair& pair = measured.pair;
  pair.round = slot.round;
  pair.process = slot.process;
  pair.index = slot.index;
  pair.disturbed = calm.why_disturbed();
  pair.warmup = slot.warmup || !pair.disturbed.empty();
  pair.paused_seconds = calm.take_paused_seconds();
  return measured;
}

Result<RoundRunner::MeasuredPair> RoundRunner::measure_pair(RoundProcess& process, bool arm_first) {
  MeasuredPair measured;
  RoundAnswer answers[2];
  const double started = context_.now();
  for (const int64_t arm : {arm_first ? 1 : 0, arm_first ? 0 : 1}) {
    TRY_ASSIGN(measured.end, measure_arm(process, arm, answers[arm]));
    if (measured.end) return measured;
  }
  JournalPair& pair = measured.pair;
  pair.seconds = context_.now() - started;
  const Measurement& base = answers[0].measurement;
  const Measurement& arm = answers[1].measurement;
  TRY_ASSIGN(measured.end, check_tokens(base, arm, pair));
  if (measured.end) return measured;
  pair.arm_first = arm_first;
  TRY_ASSIGN(pair.base, metric_of(prepared_.metric, base, prepared_.base));
  TRY_ASSIGN(pair.arm, metric_of(prepared_.metric, arm, prepared_.arm));
  if (prepared_.control) {
    TRY_ASSIGN(pair.base_control, metric_of(*prepared_.control, base, prepared_.base));
    TRY_ASSIGN(pair.arm_control, metric_of(*prepared_.control, arm, prepared_.arm));
  }
  pair.base_peak_bytes = base.peak_bytes;
  pair.arm_peak_bytes = arm.peak_bytes;
  pair.base_rows = new_rows(samples_.base_rows, base.observed);
  pair.arm_rows = new_rows(samples_.arm_rows, arm.observed);
  pair.base_kernel_use = new_kernel_use(samples_.base_kernel_use, base.kernel_use);
  pair.arm_kernel_use = new_kernel_use(samples_.arm_kernel_use, arm.kernel_use);
  pair.environment = answers[0].environment;
  return measured;
}

Result<std::optional<RoundEnd>> RoundRunner::measure_arm(RoundProcess& process, int64_t index,
                                                         RoundAnswer& answer) const {
  const bool is_base = index == 0;
  const Arm& arm = is_base ? prepared_.base : prepared_.arm;
  RoundProcess::Answer result = process.measure(index);
  if (const auto* broken = std::get_if<Broken>(&result)) {
    return std::optional(ended(RoundEnd::Kind::kBroke,
                               fmt::format("{} broke: {}", phrase(arm), broken->reason), is_base));
  }
  answer = std::move(std::get<RoundAnswer>(result));
  if (answer.error) {
    const Error& error = *answer.error;
    const std::string text = fmt::format("{}: {}", phrase(arm), error.message);
    if (error.kind == ErrorKind::kRefused) {
      return std::optional(ended(RoundEnd::Kind::kOutOfMemory, text, is_base));
    }
    return Error{error.kind, text};
  }
  if (const std::string& how = answer.measurement.broken; !how.empty()) {
    return std::optional(
        ended(RoundEnd::Kind::kBroke, fmt::format("{} broke: {}", phrase(arm), how), is_base));
  }
  TRY(check_observed(is_base ? prepared_.base_plan : prepared_.arm_plan,
                     answer.measurement.observed, phrase(arm)));
  return std::optional<RoundEnd>();
}

Result<double> RoundRunner::metric_of(const Runner::MetricInfo& metric,
                                      const Measurement& measurement, const Arm& arm) {
  const auto found = measurement.metrics.find(metric.name);
  if (found == measurement.metrics.end()) {
    return failed(fmt::format("{}: the runner gave no '{}'", phrase(arm), metric.name));
  }
  if (!(found->second > 0)) {
    return failed(fmt::format("{}: '{}' is {}, and must be above zero and finite", phrase(arm),
                              metric.name, found->second));
  }
  return found->second;
}

Status RoundRunner::check_base_tokens(const Measurement& base) const {
  if (samples_.tokens.empty()) return {};
  const ledger::TokenCheck again = compare_tokens(samples_.tokens, base.tokens, {}, "");
  if (again.identical) return {};
  return failed(
      fmt::format("the base arm did not generate the same tokens again (first at {}), so its "
                  "tokens and an arm's cannot be compared",
                  again.first_divergence->position));
}

Result<std::optional<RoundEnd>> RoundRunner::check_tokens(const Measurement& base,
                                                          const Measurement& arm,
                                                          JournalPair& pair) const {
  TRY(check_base_tokens(base));
  if (samples_.tokens.empty()) pair.tokens = base.tokens;
  ledger::TokenCheck check =
      compare_tokens(base.tokens, arm.tokens, base.margins, prepared_.experiment.workload.prompt);
  if (check.identical) return std::optional<RoundEnd>();
  if (prepared_.experiment.tokens == TokenPolicy::kMayDiverge) {
    if (samples_.tokens.empty()) {
      pair.arm_tokens = arm.tokens;
      pair.margin = check.first_divergence->margin;
    }
    return std::optional<RoundEnd>();
  }
  const std::string text = divergence_text(*check.first_divergence);
  if (prepared_.experiment.is_floor()) {
    return failed("identical arms generated different tokens: " + text);
  }
  RoundEnd end = ended(RoundEnd::Kind::kBroke, text, false);
  end.tokens = std::move(check);
  return std::optional(std::move(end));
}

Result<RoundRunner::ComparedQuality> RoundRunner::compare_quality() const {
  TRY_ASSIGN(const std::unique_ptr<RoundProcess> process, start_process());
  RoundProcess::Answer result = process->compare_quality(1, collect(journal_.pairs()).tokens);
  ComparedQuality compared;
  if (const auto* broken = std::get_if<Broken>(&result)) {
    compared.end = ended(RoundEnd::Kind::kBroke,
                         "comparing what the arms predict broke: " + broken->reason, false);
    return compared;
  }
  const auto& answer = std::get<RoundAnswer>(result);
  if (answer.error) {
    return Error{answer.error->kind, "comparing what the arms predict: " + answer.error->message};
  }
  compared.quality = *answer.quality;
  return compared;
}

}  // namespace reckon::experiment
