// A queue's outcomes as text. Pure and thread-safe.
#pragma once

#include <string>

#include "experiment/outcome.h"
#include "experiment/run.h"

namespace reckon::experiment {

// A Markdown page: a table, then a section an experiment: the verdict in one sentence, both rounds,
// effect, interval and noise band, dispatch difference, memory, tokens, scope, how to reproduce.
[[nodiscard]] std::string markdown_page(const QueueOutcome& outcome);

// For a terminal: at most 100 columns, a line an experiment and one for what it means.
[[nodiscard]] std::string text_table(const QueueOutcome& outcome);
[[nodiscard]] std::string text_table(const QueueCheck& check);

}  // namespace reckon::experiment
