#include "experiment/recorder.h"

#include <set>

#include "base/text.h"
#include "ledger/catalog.h"
#include "ledger/record.h"

namespace reckon::experiment {

Status Recorder::recover() {
  if (!journal_.committed().empty()) {
    const std::vector<ledger::Event> events = journal_.committed();
    TRY_ASSIGN(const std::vector<ledger::Event> missing, this->missing(events));
    TRY(complete(events, missing));
  }
  std::set<std::string> rounds;
  for (const JournalPair& pair : journal_.pairs()) rounds.insert(pair.round.id);
  if (rounds.empty()) return {};
  TRY_ASSIGN(const auto catalog, ledger::open_catalog(store_));
  std::set<std::string> known;
  for (const std::string& round : rounds) {
    TRY_ASSIGN(const bool recorded, catalog->has_round(round));
    if (recorded) known.insert(round);
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
  return complete(events, events);
}

Status Recorder::complete(std::span<const ledger::Event> events,
                          std::span<const ledger::Event> missing) {
  if (!missing.empty()) {
    TRY_ASSIGN(const ledger::AppendReport appended, store_.append(missing));
    warnings_.insert(warnings_.end(), appended.warnings.begin(), appended.warnings.end());
  }
  TRY(recorded_(events.front().entry));
  return journal_.clear();
}

// Rarely asked, after a kill in the middle of recording: the ledger is read whole.
Result<std::vector<ledger::Event>> Recorder::missing(std::span<const ledger::Event> events) const {
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
  return missing;
}

}  // namespace reckon::experiment
