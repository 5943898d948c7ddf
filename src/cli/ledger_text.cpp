#include "cli/ledger_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/page.h"
#include "cli/report_model.h"
#include "cli/terminal.h"
#include "experiment/verdict_text.h"
#include "experiment/words.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using ledger::MeasuredBody;
using ledger::Numbers;
using ledger::Proof;
using ledger::Scope;
using ledger::Summary;
using ledger::VerdictBody;

constexpr size_t kShownIdea = 60;
constexpr size_t kShownRows = 12;  // dispatch rows of each arm; --json has them all

Style verdict_style(ledger::Verdict verdict) {
  switch (verdict) {
    case ledger::Verdict::kWon:
      return Style::kGood;
    case ledger::Verdict::kLost:
    case ledger::Verdict::kBroke:
    case ledger::Verdict::kOutOfMemory:
      return Style::kBad;
    default:
      return Style::kBold;
  }
}

std::string day_of(const std::string& time) {
  return time.substr(0, 10);
}

std::string model_text(const Summary& entry) {
  if (entry.model_name.empty()) return entry.model_family;
  return one_line(entry.model_name).substr(entry.model_name.find_last_of('/') + 1);
}

std::string verdict_sentence(const Entry& entry) {
  if (entry.idea.kind == ledger::EntryKind::kFloor) {
    const size_t rounds = entry.rounds.size();
    return fmt::format("identical arms on purpose: {} the noise band",
                       rounds == 1 ? "1 round feeds" : fmt::format("{} rounds feed", rounds));
  }
  if (entry.idea.kind == ledger::EntryKind::kTuning) return "a sweep, which gives none";
  if (!entry.verdict) return entry.imported ? "none was reported" : "no verdict yet";
  const std::string word(verdict_name(entry.verdict->verdict));
  const std::string sentence = experiment::verdict_sentence(entry);
  return styled(word, verdict_style(entry.verdict->verdict), stdout) +
         fmt::format("{} ({})", sentence.substr(word.size()), day_of(entry.verdict_time));
}

void add_rounds(Page& page, const Entry& entry, const std::string& unit) {
  std::vector<std::string> texts;
  for (const MeasuredBody& measured : entry.rounds) {
    const ledger::Round& round = measured.round;
    const auto pairs = std::count_if(round.pairs.begin(), round.pairs.end(),
                                     [](const ledger::PairSample& pair) { return !pair.warmup; });
    texts.push_back(fmt::format("{}: {} ({}), {}, {}{}", texts.size() + 1,
                                arms_text({round.base_value}, {round.arm_value}, unit),
                                signed_share_text(std::expm1(round.median_log)),
                                counted(pairs, "pair"), round.started,
                                entry.rests_on(round) ? "" : " (not in the verdict)"));
  }
  page.lines("rounds", texts);
}

void add_numbers(Page& page, const Numbers& numbers) {
  const std::optional<ledger::Interval> band = experiment::shown_noise_band(numbers);
  if (numbers.effect) {
    std::string text = signed_share_text(*numbers.effect);
    if (numbers.interval && (band || !numbers.noise_band)) {
      text += fmt::format(", interval {} to {}", signed_share_text(numbers.interval->low),
                          signed_share_text(numbers.interval->high));
    }
    page.line("effect", text);
  }
  if (band) {
    std::string text = experiment::band_text(band->low, band->high);
    if (numbers.noise_rounds) {
      text += ", from " +
              experiment::noise_source_text(*numbers.noise_rounds, numbers.base_values.size());
    }
    if (numbers.smallest_effect) {
      text += fmt::format(", sees {} and more", signed_share_text(*numbers.smallest_effect));
    }
    page.line("noise band", text);
  } else if (numbers.noise_rounds) {
    page.field("noise band", experiment::unknown_band_text(*numbers.noise_rounds));
  }
  if (numbers.claim) page.line("claim", signed_share_text(*numbers.claim));
}

void add_rows(Page& page, char mark, const std::vector<std::string>& rows) {
  for (size_t i = 0; i < std::min(rows.size(), kShownRows); ++i) {
    page.line("", fmt::format("{} {}", mark, rows[i]));
  }
  if (rows.size() > kShownRows) {
    page.line("", fmt::format("{} … {} more", mark, rows.size() - kShownRows));
  }
}

void add_proof(Page& page, const Proof& proof) {
  const bool same = proof.base_fingerprint == proof.arm_fingerprint;
  page.line("dispatch", fmt::format("{} {}: base {}, arm {}", same ? "the same," : "differs,",
                                    proof.observed ? "observed" : "as the plan predicts",
                                    proof.base_fingerprint, proof.arm_fingerprint));
  add_rows(page, '-', proof.only_base);
  add_rows(page, '+', proof.only_arm);
  page.lines("side effects", proof.side_effects);
}

void add_tokens(Page& page, const ledger::TokenCheck& tokens) {
  if (tokens.identical) {
    page.line("tokens", fmt::format("identical ({} compared)", tokens.compared));
  } else if (tokens.first_divergence) {
    const ledger::Divergence& at = *tokens.first_divergence;
    page.line("tokens", fmt::format("diverge at position {}: {} against {}{}", at.position,
                                    at.base_token, at.arm_token,
                                    at.margin ? fmt::format(" (margin {:.3g})", *at.margin) : ""));
  } else {
    page.line("tokens", "differ");
  }
  if (tokens.mean_kl) page.line("", fmt::format("mean KL {:.3g} nats a token", *tokens.mean_kl));
  if (tokens.perplexity_change) {
    page.line("", fmt::format("perplexity {}", signed_share_text(*tokens.perplexity_change)));
  }
}

void add_memory(Page& page, const VerdictBody& verdict) {
  if (verdict.peaks) {
    page.line("memory",
              fmt::format("peak of base {}, arm {}", format_bytes_short(verdict.peaks->base_bytes),
                          format_bytes_short(verdict.peaks->arm_bytes)));
  }
  if (!verdict.memory_plan) return;
  const ledger::MemoryPlan& plan = *verdict.memory_plan;
  page.line(verdict.peaks ? "" : "memory",
            fmt::format("plan of base {}, arm {}; budget {}", format_bytes_short(plan.base_bytes),
                        format_bytes_short(plan.arm_bytes), format_bytes_short(plan.budget_bytes)));
  for (size_t i = 0; i < std::min<size_t>(plan.arm_terms.size(), 5); ++i) {
    page.line("", fmt::format("  {:<22} {:>12}", plan.arm_terms[i].name,
                              format_bytes_short(plan.arm_terms[i].bytes)));
  }
}

void add_reasons(Page& page, const VerdictBody& verdict) {
  page.field("mechanism", verdict.mechanism);
  page.lines("evidence", verdict.evidence);
  page.field("conditions", verdict.conditions);
  page.lines("revisit when", verdict.revisit_when);
  page.field("lever", verdict.lever);
  page.field("pulled by", verdict.lever_entry);
}

void add_verdict(Page& page, const Entry& entry, const std::string& unit) {
  if (shows_numbers(entry)) {
    add_rounds(page, entry, unit);
  } else if (!entry.rounds.empty()) {
    page.line("rounds", counted(static_cast<int64_t>(entry.rounds.size()), "round") +
                            " measured; their numbers are no result");
  }
  if (!entry.verdict) return;
  const VerdictBody& verdict = *entry.verdict;
  page.field("quality cost", quality_of(entry));
  if (verdict.numbers && shows_numbers(entry)) add_numbers(page, *verdict.numbers);
  if (verdict.proof) add_proof(page, *verdict.proof);
  if (verdict.tokens) add_tokens(page, *verdict.tokens);
  add_memory(page, verdict);
  add_reasons(page, verdict);
}

// "text", and after it what is known of the rest, in brackets.
std::string with_details(const std::string& text, std::vector<std::string> details) {
  std::erase(details, "");
  return details.empty() ? text : fmt::format("{} ({})", text, join(details, ", "));
}

// An entry that was reported knows less of its workload than one that was measured.
std::string workload_text(const Scope& scope) {
  std::vector<std::string> parts;
  if (scope.chunk > 0) parts.push_back(fmt::format("chunk {}", scope.chunk));
  if (scope.rows > 0) parts.push_back(counted(scope.rows, "row"));
  if (scope.context > 0) parts.push_back(fmt::format("context {}", scope.context));
  if (!scope.backend.empty()) parts.push_back("backend " + scope.backend);
  const std::string& named = scope.workload_class.empty() ? scope.metric : scope.workload_class;
  return parts.empty() ? named : fmt::format("{}; {}", named, join(parts, ", "));
}

void add_scope(Page& page, const Entry& entry) {
  const Scope& scope = entry.idea.scope;
  page.field("device", device_of(entry));
  page.field("model",
             with_details(entry.idea.model_name, {scope.model_family, scope.weight_format}));
  page.field("workload", workload_text(scope));
  for (const auto& [key, value] : scope.base_switches) {
    const auto arm = scope.arm_switches.find(key);
    const bool both = arm != scope.arm_switches.end() && arm->second == value;
    page.line("", fmt::format("{}={}{}", key, value, both ? "" : " (base)"));
  }
}

std::string reproduce_text(const std::string& id, const std::string& ledger) {
  const std::string reckon =
      ledger.empty() ? "reckon" : fmt::format("reckon --ledger {}", shell_quoted(ledger));
  return fmt::format(
      "{0} ledger show {1} --queue > again.yaml && {0} queue run again.yaml --force 'reproduce'",
      reckon, id);
}

// "rk-… WON +3.1%, 2026-09-25, prefill.tile auto -> tall, big.gguf".
std::string link_text(const Summary& entry) {
  if (entry.created.empty()) return entry.id + " (not in this ledger)";
  return fmt::format("{} {}{}, {}, {}, {}", entry.id, verdict_text(entry),
                     entry.effect ? " " + signed_share_text(*entry.effect) : "",
                     day_of(entry.updated), switch_text(entry), model_text(entry));
}

void add_links(Page& page, const char* label, const std::vector<Summary>& entries) {
  std::vector<std::string> texts;
  for (const Summary& entry : entries) texts.push_back(link_text(entry));
  page.lines(label, texts);
}

void add_status(Page& page, const Entry& entry, const ledger::Chain& chain) {
  if (entry.status != ledger::EntryStatus::kOpen) {
    page.line("status", std::string(entry_status_name(entry.status)));
  }
  std::vector<std::string> changes;
  for (const ledger::StatusChange& change : entry.history) {
    changes.push_back(fmt::format("{} {}: {}{}: {}", day_of(change.time), change.writer,
                                  entry_status_name(change.status),
                                  change.by.empty() ? "" : " by " + change.by, change.reason));
  }
  page.lines("history", changes);
  add_links(page, "superseded by", chain.superseded_by);
  add_links(page, "supersedes", chain.supersedes);
  add_links(page, "lever of", chain.lever_of);
}

void add_history(Page& page, const Entry& entry, const PageContext& context) {
  if (entry.imported) {
    page.lines("figures", reported_series(entry));
    page.field("imported", fmt::format("reported by {}, not measured here", entry.import_source));
  }
  page.lines("table", tuned_table(entry));
  page.lines("rules", tuned_rules(entry));
  add_status(page, entry, context.chain);
  page.field("forced", entry.idea.force_reason);
  page.field("unfinished", fmt::format("{}", fmt::join(entry.unfinished_because(), ", ")));
  for (const ledger::Note& note : entry.notes) {
    page.field("note", fmt::format("{} {}: {}", day_of(note.time), note.writer, note.text));
  }
  page.line("recorded", fmt::format("{} by {}", entry.created, entry.writer));
  page.field("commit", entry.idea.reproduce.commit);
  page.field("command", entry.idea.reproduce.command);
  if (!entry.idea.reproduce.queue_text.empty()) {
    page.line("reproduce", reproduce_text(entry.id, context.ledger));
  }
}

}  // namespace

std::string verdict_text(const Summary& entry) {
  if (entry.kind != ledger::EntryKind::kComparison) return std::string(entry_kind_name(entry.kind));
  return entry.verdict ? std::string(verdict_name(*entry.verdict)) : "open";
}

std::string switch_text(const Summary& entry) {
  if (entry.switch_key.empty() && !entry.imported) return "identical arms";
  if (entry.switch_key.empty()) return "figures of " + shorten(one_line(entry.idea), kShownIdea);
  return one_line(fmt::format("{} {} -> {}", entry.switch_key, entry.base_value, entry.arm_value));
}

Table list_table(std::span<const Summary> entries) {
  Table table({{"entry"}, {"day"}, {"verdict"}, {"effect", Align::kRight}, {"model"}, {"switch"}});
  for (const Summary& entry : entries) {
    std::string verdict = verdict_text(entry);
    if (entry.imported) verdict += " (reported)";
    if (entry.status != ledger::EntryStatus::kOpen) {
      verdict += fmt::format(" ({})", entry_status_name(entry.status));
    }
    table.add({entry.id, day_of(entry.updated), verdict,
               entry.effect ? signed_share_text(*entry.effect) : "", model_text(entry),
               switch_text(entry)});
  }
  return table;
}

std::string entry_page(const Entry& entry, const PageContext& context) {
  Page page;
  page.title(styled(entry.id, Style::kBold, stdout) + "  " + switch_text(summary_of(entry)));
  page.blank();
  page.field("idea", entry.idea.text);
  page.line("verdict", verdict_sentence(entry));
  add_verdict(page, entry, context.unit);
  page.blank();
  add_scope(page, entry);
  add_history(page, entry, context);
  return page.text();
}

}  // namespace reckon::cli
