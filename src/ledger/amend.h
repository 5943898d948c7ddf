// The events that people add to an entry by hand. They say what is refused: a change without a
// reason, one that changes nothing, a chain that bites its tail. Pure but for what they ask the
// catalog; entries are named by id or unique prefix. What is wrong with a request is a usage error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/catalog.h"
#include "ledger/event.h"
#include "ledger/record.h"

namespace reckon::ledger {

struct Signature {
  std::string writer;
  std::string time;  // as Event::time
};

// The result was wrong: nothing is known about its scope any more.
[[nodiscard]] Result<Event> overturn(Catalog& catalog, std::string_view entry,
                                     const std::string& reason, const Signature& signature);

// It is worth measuring again: the entry blocks nothing until its next verdict.
[[nodiscard]] Result<Event> reopen(Catalog& catalog, std::string_view entry,
                                   const std::string& reason, const Signature& signature);

// `by` answers better. The entry still stands for its own scope.
[[nodiscard]] Result<Event> supersede(Catalog& catalog, std::string_view entry, std::string_view by,
                                      const std::string& reason, const Signature& signature);

// A text, or fields that take the place of the verdict's own; lever_entry may be a prefix.
[[nodiscard]] Result<Event> add_note(Catalog& catalog, std::string_view entry, NoteBody note,
                                     const Signature& signature);

}  // namespace reckon::ledger
