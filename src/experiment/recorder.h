// Appends an experiment's events to the ledger exactly once, whatever is killed when.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/journal.h"
#include "ledger/event.h"
#include "ledger/record.h"
#include "ledger/store.h"

namespace reckon::experiment {

class Recorder {
 public:
  // `recorded` is called with the entry's id when its events are in the ledger and their journal
  // is not yet cleared: at least once, and again where a kill came in between.
  using Recorded = std::function<Status(const std::string& entry)>;
  Recorder(ledger::Store& store, Journal& journal, std::string writer, Recorded recorded)
      : store_(store),
        journal_(journal),
        writer_(std::move(writer)),
        recorded_(std::move(recorded)) {}

  // Completes what a killed run had begun to record, and forgets the pairs of rounds that the
  // ledger has.
  [[nodiscard]] Status recover();

  // An entry's first event, to be recorded before or with its others.
  [[nodiscard]] Result<ledger::Event> new_entry(const ledger::IdeaBody& body) const;
  [[nodiscard]] ledger::Event measured(const std::string& entry,
                                       const ledger::MeasuredBody& body) const;
  [[nodiscard]] ledger::Event verdict(const std::string& entry,
                                      const ledger::VerdictBody& body) const;

  // Journals the events, appends them, clears the journal. On stable storage when it returns ok;
  // after an error or a kill, recover() of a later run completes it.
  [[nodiscard]] Status record(std::span<const ledger::Event> events);

  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // Appends those of a commit that the ledger lacks, and clears the journal.
  [[nodiscard]] Status complete(std::span<const ledger::Event> events,
                                std::span<const ledger::Event> missing);
  [[nodiscard]] Result<std::vector<ledger::Event>> missing(
      std::span<const ledger::Event> events) const;

  ledger::Store& store_;
  Journal& journal_;
  std::string writer_;
  Recorded recorded_;
  std::vector<std::string> warnings_;
};

}  // namespace reckon::experiment
