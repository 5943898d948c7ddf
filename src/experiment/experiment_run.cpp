#include "experiment/experiment_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/text.h"
#include "experiment/evidence.h"
#include "experiment/numbers.h"
#include "experiment/prepare.h"
#include "experiment/random.h"
#include "experiment/record.h"
#include "experiment/recorder.h"
#include "experiment/stored_noise.h"
#include "experiment/verdict_text.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

constexpr int kFloorBandRounds = 2;  // of the comparison that a floor's band is shown for

class ExperimentRun {
 public:
  ExperimentRun(RunContext& context, const Experiment& experiment)
      : context_(context), experiment_(experiment) {
    outcome_.id = experiment.id;
    outcome_.idea = experiment.idea;
    outcome_.design = experiment.lengthened;
  }

  // What comes before the first round; a floor is run whole.
  void start() {
    attempt([this] { return begin(); });
  }
  // There are rounds left to run.
  [[nodiscard]] bool running() const { return running_; }
  // The next round, and after the last one the verdict.
  void step() {
    attempt([this] { return next_round(); });
  }
  Outcome take_outcome() {
    if (recorder_) {
      for (const std::string& warning : recorder_->warnings()) note(warning);
    }
    return std::move(outcome_);
  }

 private:
  void attempt(const std::function<Status()>& part) {
    const double started = context_.now();
    if (const Status status = part(); !status.ok()) {
      running_ = false;
      outcome_.kind = OutcomeKind::kFailed;
      outcome_.error = status.error().kind;
      outcome_.text = status.error().message;
    }
    outcome_.seconds += context_.now() - started;
  }

  Status begin() {
    if (!outcome_.design.empty()) context_.progress.on_note(experiment_, outcome_.design);
    Result<Prepared> prepared = prepare(context_.queue.path, experiment_, context_.runner);
    if (!prepared.ok()) {
      if (prepared.error().kind != ErrorKind::kUnsupported) return prepared.error();
      return finish(OutcomeKind::kRefused, prepared.error().message);
    }
    prepared_ = std::move(prepared).value();
    const std::string key = journal_key(prepared_);
    TRY_ASSIGN(journal_,
               Journal::open(context_.folder, key, fmt::format("experiment '{}'", experiment_.id)));
    for (const std::string& warning : journal_->warnings()) note(warning);
    recorder_.emplace(
        context_.store, *journal_, context_.options.writer, [this, key](const std::string& entry) {
          return experiment_.is_floor() ? Status() : context_.record.concluded(key, entry);
        });
    TRY(recorder_->recover());
    if (const std::optional<std::string> entry = context_.record.entry_of(key)) {
      TRY_ASSIGN(const bool stands, still_stands(*entry));
      if (stands) {
        note("already concluded in this run of the queue");
        return conclude(*entry);
      }
    }
    TRY(judge_now());
    switch (judgement_.next) {
      case Judgement::Next::kRefuse:
        return finish(OutcomeKind::kRefused, judgement_.text);
      case Judgement::Next::kKeep:
        return conclude_floor(OutcomeKind::kKept);
      case Judgement::Next::kRecordVoid:
        return record_verdict({}, void_by_plan(prepared_, judgement_, environment()));
      case Judgement::Next::kRecordOutOfMemory:
        return record_verdict({}, out_of_memory(prepared_, judgement_.text, environment()));
      case Judgement::Next::kRun:
        return experiment_.is_floor() ? run_floor() : begin_rounds();
    }
    RECKON_CHECK(false);
  }

  // Nobody overturned or reopened it since.
  Result<bool> still_stands(const std::string& entry) const {
    TRY_ASSIGN(const auto ledger, ledger::open_catalog(context_.store));
    TRY_ASSIGN(const ledger::Entry known, ledger->entry(entry));
    return known.status != ledger::EntryStatus::kOverturned &&
           known.status != ledger::EntryStatus::kReopened;
  }

  Status judge_now() {
    TRY_ASSIGN(const auto ledger, ledger::open_catalog(context_.store));
    for (const std::string& warning : ledger->warnings()) note(warning);
    JudgeOptions options;
    options.force = !context_.options.force_reason.empty();
    TRY_ASSIGN(judgement_, judge(prepared_, *ledger, options));
    if (!judgement_.blocked_by.empty()) {
      TRY_ASSIGN(const ledger::Entry known, ledger->entry(judgement_.blocked_by));
      if (known.verdict) outcome_.known_verdict = known.verdict->verdict;
    }
    for (const std::string& text : judgement_.notes) note(text);
    return {};
  }

  Status begin_rounds() {
    rounds_.emplace(context_, prepared_, *journal_, judgement_.first_index);
    const auto journalled = static_cast<int>(collect(journal_->pairs()).rounds.size());
    count_ = std::max(judgement_.rounds, journalled);
    running_ = true;
    return {};
  }

  Status next_round() {
    TRY_ASSIGN(const RoundEnd end, rounds_->run(number_, count_, static_cast<size_t>(number_)));
    if (end.kind == RoundEnd::Kind::kComplete && ++number_ < count_) return {};
    running_ = false;
    if (end.kind == RoundEnd::Kind::kPaused) return pause(end.detail);
    if (end.kind != RoundEnd::Kind::kComplete) return record_end(end);
    return conclude_rounds();
  }

  Status conclude_rounds() {
    TRY_ASSIGN(const std::vector<ledger::MeasuredBody> fresh, complete_rounds());
    std::vector<ledger::MeasuredBody> all = judgement_.earlier;
    all.insert(all.end(), fresh.begin(), fresh.end());
    const Samples samples = collect(journal_->pairs());
    TRY_ASSIGN(ledger::VerdictBody verdict, verdict_of_rounds(prepared_, judgement_, samples, all));
    if (experiment_.tokens == TokenPolicy::kMayDiverge && verdict.numbers) {
      TRY_ASSIGN(const RoundRunner::ComparedQuality compared, rounds_->compare_quality());
      if (compared.end) return record_end(*compared.end);
      add_quality(compared.quality, *verdict.tokens);
    }
    if (const Status added = add_evidence(prepared_, samples, context_.runner, verdict);
        !added.ok()) {
      note("no evidence beside the verdict: " + added.error().message);
    }
    return record_verdict(fresh, verdict);
  }

  // A round of identical arms is recorded as soon as it is complete.
  Status run_floor() {
    const int count = judgement_.rounds;
    for (int number = 0; number < count; ++number) {
      RoundRunner rounds(context_, prepared_, *journal_, judgement_.noise.rounds);
      TRY_ASSIGN(const RoundEnd end, rounds.run(number, count, 0));
      if (end.kind == RoundEnd::Kind::kPaused) return pause(end.detail);
      if (end.kind == RoundEnd::Kind::kOutOfMemory || end.kind == RoundEnd::Kind::kDisturbed) {
        return finish(OutcomeKind::kRefused, end.detail);
      }
      if (end.kind == RoundEnd::Kind::kBroke) return failed(end.detail);
      TRY_ASSIGN(const std::vector<ledger::MeasuredBody> fresh, complete_rounds());
      std::vector<ledger::Event> events;
      TRY(begin_entry(latest_environment(), events));
      for (const ledger::MeasuredBody& body : fresh) {
        events.push_back(recorder_->measured(judgement_.joins, body));
      }
      TRY(recorder_->record(events));
    }
    return conclude_floor(OutcomeKind::kFloor);
  }

  Status record_end(const RoundEnd& end) {
    if (end.kind == RoundEnd::Kind::kOutOfMemory && end.base_arm) {
      return finish(OutcomeKind::kRefused, "the base arm itself does not fit: " + end.detail);
    }
    TRY_ASSIGN(const std::vector<ledger::MeasuredBody> fresh, complete_rounds());
    std::vector<std::string> ids;
    for (const auto& measured : judgement_.earlier) ids.push_back(measured.round.id);
    for (const auto& measured : fresh) ids.push_back(measured.round.id);
    return record_verdict(fresh, verdict_of_end(prepared_, end, collect(journal_->pairs()), ids,
                                                latest_environment()));
  }

  Status record_verdict(const std::vector<ledger::MeasuredBody>& fresh,
                        const ledger::VerdictBody& verdict) {
    std::vector<ledger::Event> events;
    TRY(begin_entry(latest_environment(), events));
    const std::string& entry = judgement_.joins;
    for (const ledger::MeasuredBody& body : fresh) {
      events.push_back(recorder_->measured(entry, body));
    }
    events.push_back(recorder_->verdict(entry, verdict));
    TRY(recorder_->record(events));
    return conclude(entry);
  }

  // Adds the entry's first event where it is new; judgement_.joins names it from then on.
  Status begin_entry(const nlohmann::json& environment, std::vector<ledger::Event>& events) {
    if (!judgement_.joins.empty()) return {};
    const std::string reason =
        judgement_.overrides_ledger ? context_.options.force_reason : std::string();
    ledger::IdeaBody idea = idea_body(prepared_, context_.options, environment, reason);
    // Two entries for the same idea in the same second are still two.
    idea.extra["nonce"] = fmt::format("{:016x}", random_bits());
    TRY_ASSIGN(ledger::Event event, recorder_->new_entry(idea));
    judgement_.joins = event.entry;
    events.push_back(std::move(event));
    return {};
  }

  // The rounds in the journal that have all their pairs.
  Result<std::vector<ledger::MeasuredBody>> complete_rounds() const {
    const Samples samples = collect(journal_->pairs());
    std::vector<ledger::MeasuredBody> bodies;
    for (const CollectedRound& round : samples.rounds) {
      if (!round.missing(experiment_.pairs).empty()) continue;
      TRY_ASSIGN(ledger::MeasuredBody body, measured_body(prepared_, samples, round));
      bodies.push_back(std::move(body));
    }
    return bodies;
  }

  nlohmann::json environment() const { return context_.runner.environment(); }

  // Of the latest process that measured, else of this one.
  nlohmann::json latest_environment() const {
    const Samples samples = collect(journal_->pairs());
    if (!samples.rounds.empty() && !samples.rounds.back().environment.empty()) {
      return samples.rounds.back().environment;
    }
    return environment();
  }

  // The outcome is what the ledger now says about the entry.
  Status conclude(const std::string& entry) {
    TRY_ASSIGN(const auto ledger, ledger::open_catalog(context_.store));
    Result<ledger::Entry> found = ledger->entry(entry);
    if (!found.ok() || !found->verdict) {
      return failed(fmt::format("the ledger does not show {} after it was written", entry));
    }
    outcome_.entry = entry;
    outcome_.record = *std::move(found);
    return finish(OutcomeKind::kVerdict, verdict_sentence(*outcome_.record));
  }

  Status conclude_floor(OutcomeKind kind) {
    TRY_ASSIGN(const auto ledger, ledger::open_catalog(context_.store));
    TRY_ASSIGN(const std::vector<ledger::Entry> peers, ledger->of_class(prepared_.scope));
    FloorSummary floor;
    floor.rounds = kFloorBandRounds;
    TRY_ASSIGN(const StoredNoise stored, stored_noise(prepared_, peers, utc_timestamp()));
    floor.noise = stored.noise;
    if (floor.noise.rounds >= 2) {
      TRY_ASSIGN(floor.band, measure::design_band(floor.noise, floor.rounds));
    }
    if (!judgement_.joins.empty()) {
      TRY_ASSIGN(outcome_.record, ledger->entry(judgement_.joins));
      outcome_.entry = judgement_.joins;
    }
    const std::string summary = floor_sentence(floor);
    outcome_.floor = floor;
    return finish(kind, kind == OutcomeKind::kKept ? judgement_.text + "; " + summary : summary);
  }

  Status pause(const std::string& why) {
    const Samples samples = collect(journal_->pairs());
    size_t pairs = 0;
    for (const CollectedRound& round : samples.rounds) pairs += round.pairs.size();
    return finish(OutcomeKind::kPaused,
                  fmt::format("stopped: {}; {} in the journal, and the same command goes on", why,
                              pairs == 1 ? "1 finished pair waits"
                                         : fmt::format("{} finished pairs wait", pairs)));
  }

  Status finish(OutcomeKind kind, std::string text) {
    outcome_.kind = kind;
    outcome_.text = std::move(text);
    return {};
  }

  void note(const std::string& text) {
    outcome_.notes.push_back(text);
    context_.progress.on_note(experiment_, text);
  }

  RunContext& context_;
  const Experiment& experiment_;
  Outcome outcome_;
  Prepared prepared_;
  std::unique_ptr<Journal> journal_;
  std::optional<Recorder> recorder_;
  Judgement judgement_;
  std::optional<RoundRunner> rounds_;
  bool running_ = false;
  int number_ = 0, count_ = 0;  // the next round of those that this run needs
};

}  // namespace

std::vector<Outcome> run_interleaved(RunContext& context, std::span<const Experiment> experiments) {
  std::vector<std::unique_ptr<ExperimentRun>> runs;
  for (const Experiment& experiment : experiments) {
    runs.push_back(std::make_unique<ExperimentRun>(context, experiment));
    runs.back()->start();
  }
  const auto running = [](const auto& run) { return run->running(); };
  while (std::any_of(runs.begin(), runs.end(), running)) {
    for (const auto& run : runs) {
      if (run->running()) run->step();
    }
  }
  std::vector<Outcome> outcomes;
  for (const auto& run : runs) outcomes.push_back(run->take_outcome());
  return outcomes;
}

}  // namespace reckon::experiment
