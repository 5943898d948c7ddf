// Ledger entries for people: lines of a list and the page of one entry, at most 100 columns wide
// where the content allows. Pure, but for style on terminals (terminal.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/table.h"
#include "ledger/chain.h"
#include "ledger/fold.h"
#include "ledger/summary.h"

namespace reckon::cli {

// "WON", "aa" for identical arms, "open" where nothing was decided yet.
[[nodiscard]] std::string verdict_text(const ledger::Summary& entry);

// "prefill.tile_order row -> band8"; "identical arms".
[[nodiscard]] std::string switch_text(const ledger::Summary& entry);

// A line an entry.
[[nodiscard]] Table list_table(std::span<const ledger::Summary> entries);

// What an entry does not hold and its page needs.
struct PageContext {
  std::string unit;    // of its metric; "": none is known
  std::string ledger;  // --ledger as it may be shown (ledger/open.h); "": the default one
  ledger::Chain chain;
};

// The verdict in one sentence, both rounds, the number, interval, noise band, dispatch difference,
// tokens, memory, mechanism, conditions, lever, scope, history and how to reproduce it.
[[nodiscard]] std::string entry_page(const ledger::Entry& entry, const PageContext& context);

}  // namespace reckon::cli
