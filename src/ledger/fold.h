// The current state of every entry: a fold over events. Nothing is edited, so a fold of the same
// events gives the same state, in whichever order several writers' files were read (Store::read
// orders them). Pure and thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/event.h"
#include "ledger/record.h"

namespace reckon::ledger {

enum class EntryStatus {
  kOpen,        // stands as it is (with or without a verdict yet)
  kOverturned,  // the result was wrong; only `reopened` leaves this state
  kReopened,    // worth measuring again, though superseded later; the next verdict makes it kOpen
  kSuperseded,  // another entry answers better; the verdict itself still stands
};
[[nodiscard]] std::string_view entry_status_name(EntryStatus status);

struct Note {
  std::string time;
  std::string writer;
  std::string text;
};

// An `overturned`, `reopened` or `superseded` event.
struct StatusChange {
  EntryStatus status = EntryStatus::kOpen;
  std::string time;
  std::string writer;
  std::string reason;
  std::string by;  // of kSuperseded
};

struct Entry {
  std::string id;
  std::string created;  // times as Event::time
  std::string updated;
  std::string writer;  // of the first event

  IdeaBody idea;
  bool imported = false;  // reported elsewhere, never "measured here"; blocks nothing
  std::string import_source;
  nlohmann::json figures;  // of an imported entry

  std::vector<MeasuredBody> rounds;  // each round id once, in the order measured
  size_t rounds_before = 0;          // the first so many are from before it was last reopened
  // The latest verdict. Notes after it replace its mechanism, evidence, conditions and lever where
  // they state them; a later verdict of the same kind keeps what it does not state itself.
  std::optional<VerdictBody> verdict;
  std::string verdict_time;

  EntryStatus status = EntryStatus::kOpen;
  std::string status_reason;
  std::string superseded_by;
  std::vector<StatusChange> history;  // every change, oldest first
  std::vector<Note> notes;

  // The rounds that its next verdict rests on beside new ones: those since it was last reopened.
  [[nodiscard]] std::span<const MeasuredBody> counting_rounds() const;
  // Does its verdict rest on this round? True where the verdict names none.
  [[nodiscard]] bool rests_on(const Round& round) const;

  // Why the entry is not finished: no verdict, no mechanism, measured from a dirty tree. Empty
  // for a finished entry and for a kFloor entry with rounds.
  [[nodiscard]] std::vector<std::string> unfinished_because() const;
};

struct Ledger {
  std::vector<Entry> entries;  // oldest first
  // Events that could not be used, and why: "rk-… by ann at … left out: …".
  std::vector<std::string> warnings;

  // nullptr where there is none.
  [[nodiscard]] const Entry* find(std::string_view id) const;
  // By id or unique prefix (resolve_id).
  [[nodiscard]] Result<const Entry*> resolve(std::string_view prefix) const;
};

// Never fails: an event that cannot be used (unknown entry, broken body, a round id that another
// entry or a different content already took) is left out with a warning.
[[nodiscard]] Ledger fold(std::span<const Event> events);

// Does an A/A round in scope `a` say how noisy rounds in scope `b` are: same device, metric and
// workload class?
[[nodiscard]] bool same_noise(const Scope& a, const Scope& b);
// 16 base-32 characters; equal where same_noise is.
[[nodiscard]] std::string noise_id(const Scope& scope);

// The entries of the scope's workload class, oldest first; whether an entry holds the round.
[[nodiscard]] std::vector<Entry> entries_of_class(const Ledger& ledger, const Scope& scope);
[[nodiscard]] bool holds_round(const Ledger& ledger, std::string_view round);

}  // namespace reckon::ledger
