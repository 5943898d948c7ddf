// The order that every store reads events back in. Pure and thread-safe.
#pragma once

#include <vector>

#include "ledger/event.h"

namespace reckon::ledger {

// By time; but a writer's own order stands even where its clock went back: its events sort by the
// latest time that it had reached. Ties go by the writer's name, then by the order given.
[[nodiscard]] std::vector<Event> in_read_order(std::vector<Event> events);

}  // namespace reckon::ledger
