// Does the ledger already know? Asked before anything is measured. Pure and thread-safe.
//
// Only an entry of exactly the same scope can block. Fewer false blocks matter more than fewer
// repeats, so whatever is not known to be the same is reported and allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ledger/fold.h"
#include "ledger/predicate.h"
#include "ledger/scope.h"

namespace reckon::ledger {

struct Query {
  Scope scope;
  std::optional<double> claim;  // a share; unset asks about any gain at all
  // Source hash of every variant and rule in reach, now; unset where the caller cannot know, and
  // then nothing counts as stale.
  std::optional<Sources> sources;
  Facts facts;  // of the environment now (facts.h), beside those that the scope states
};

struct Finding {
  std::string entry;
  std::optional<Verdict> verdict;  // unset: none was reached yet
  std::string text;                // one line for people
};

struct NearFinding : Finding {
  std::vector<ScopeDifference> differences;  // a: the entry, b: the query
};

struct StaleFinding : Finding {
  std::vector<std::string> changed;  // variants and rules whose source hash changed
};

struct OfferFinding : Finding {
  std::string predicate;  // the one that holds now and did not when it was measured
};

struct Consultation {
  // Set: do not measure. The text has the number, the date and how to override.
  std::optional<Finding> block;
  // The entry that takes new rounds: the latest that was reopened and waits for its next verdict,
  // whose earlier rounds do not count (Entry::counting_rounds); else the latest that is
  // INCONCLUSIVE or without a verdict. Not overturned, not stale, not imported.
  std::optional<Finding> join;
  std::vector<Finding> allowed;     // same scope, not blocking, and why
  std::vector<StaleFinding> stale;  // same scope, other sources
  std::vector<OfferFinding> offers;
  // Same switch key, other scope: those with the fewest differences first, kNearest at most, of
  // near_count.
  std::vector<NearFinding> near;
  size_t near_count = 0;
};

inline constexpr size_t kNearest = 20;

[[nodiscard]] Consultation consult(std::span<const Entry> entries, const Query& query);

// The entry's conditions to revisit it that did not hold when it was measured: all that could make
// it an offer.
[[nodiscard]] std::vector<std::string> open_conditions(const Entry& entry);

// The finding with the fields that differ, "chunk 2048 there, 128 here; …": of a workload class
// only those of its words that differ.
[[nodiscard]] std::string near_text(const NearFinding& near);

// "LOST -3.9% (949.4 / 951.9 -> 914.6 / 914.7 tok/s) on 2026-09-14": one line about an entry.
[[nodiscard]] std::string summarize(const Entry& entry);

}  // namespace reckon::ledger
