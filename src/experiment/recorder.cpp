#include "experiment/recorder.h"

#include <set>

#include "base/text.h"
#include "ledger/record.h"

namespace reckon::experiment {

Result<ledger::Ledger> read_ledger(const ledger::Store& store, std::vector<std::string>& warnings) {
  TRY_ASSIGN(const ledger::ReadReport report, store.read());
  ledger::Ledger ledger = ledger::fold(report.events);
  warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  warnings.insert(warnings.end(), ledger.warnings.begin(), ledger.warnings.end());
  return ledger;
}

Status Recorder::recover() {
  if (!journal_.committed().empty()) {
    const std::vector<ledger::Event> events = journal_.committed();
    TRY(complete(events));
  }
  std::vector<std::string> ignored;  // the caller reads the ledger again and shows them
  TRY_ASSIGN(const ledger::Ledger ledger, read_ledger(store_, ignored));
  std::set<std::string> known;
  for (const ledger::Entry& other : ledger.entries) {
    for (const ledger::MeasuredBody& measured : other.rounds) known.insert(measured.round.id);
  }
  return journal_.drop_rounds(known);
}

Result<ledger::Event> Recorder::new_entry(const ledger::IdeaBody& body) const {
  return ledger::make_first_event(ledger::EventType::kIdea, ledger::encode(body), writer_,
                                  utc_timestamp());
}

ledger::Event Recorder::measured(const std::string& entry, const ledger::MeasuredBody& body) const {
  return ledger::make_event(ledger::EventType::kMeasured, entry, ledger::encode(body), writer_,
                            utc_timestamp());
}

ledger::Event Recorder::verdict(const std::string& entry, const ledger::VerdictBody& body) const {
  return ledger::make_event(ledger::EventType::kVerdict, entry, ledger::encode(body), writer_,
                            utc_timestamp());
}

Status Recorder::record(std::span<const ledger::Event> events) {
  TRY(journal_.commit(events));
  return complete(events);
}

Status Recorder::complete(std::span<const ledger::Event> events) {
  TRY(append_missing(events));
  TRY(recorded_(events.front().entry));
  return journal_.clear();
}

Status Recorder::append_missing(std::span<const ledger::Event> events) {
  TRY_ASSIGN(const ledger::ReadReport report, store_.read());
  std::set<std::string> known;
  for (const ledger::Event& event : report.events) {
    TRY_ASSIGN(std::string sum, ledger::checksum(event));
    known.insert(std::move(sum));
  }
  std::vector<ledger::Event> missing;
  for (const ledger::Event& event : events) {
    TRY_ASSIGN(const std::string sum, ledger::checksum(event));
    if (!known.contains(sum)) missing.push_back(event);
  }
  if (missing.empty()) return {};
  TRY_ASSIGN(const ledger::AppendReport appended, store_.append(missing));
  warnings_.insert(warnings_.end(), appended.warnings.begin(), appended.warnings.end());
  return {};
}

}  // namespace reckon::experiment
