#include "experiment/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "experiment/beside.h"
#include "experiment/verdict_text.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

constexpr size_t kRowsShown = 12;

// Plain text that Markdown shows as it is, on one line.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_<>[]|#").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// A fence longer than any run of backticks in `text`.
std::string fence(const std::string& text, size_t shortest) {
  size_t longest = shortest - 1;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

std::string code(const std::string& text) {
  const std::string ticks = fence(text, 1);
  const char* pad = ticks.size() > 1 ? " " : "";
  return ticks + pad + one_line(text) + pad + ticks;
}

std::string code_block(const std::string& language, const std::string& text) {
  const std::string ticks = fence(text, 3);
  const std::string end = text.empty() || text.back() == '\n' ? "" : "\n";
  return fmt::format("{}{}\n{}{}{}\n\n", ticks, language, text, end, ticks);
}

std::string result_word(const Outcome& outcome) {
  if (const auto verdict = outcome.verdict()) return std::string(ledger::verdict_name(*verdict));
  return std::string(outcome_kind_name(outcome.kind));
}

std::string interval_text(const ledger::Interval& interval) {
  return fmt::format("{} to {}", signed_share_text(interval.low), signed_share_text(interval.high));
}

std::string table_row(const Outcome& outcome) {
  std::string effect;
  std::string band;
  std::string base;
  std::string arm;
  const ledger::Entry* entry = outcome.record ? &*outcome.record : nullptr;
  if (entry != nullptr && entry->verdict && entry->verdict->numbers) {
    const ledger::Numbers& numbers = *entry->verdict->numbers;
    if (numbers.effect) effect = signed_share_text(*numbers.effect);
    if (const auto shown = shown_noise_band(numbers)) band = band_text(shown->low, shown->high);
    base = values_text(numbers.base_values, numbers.unit);
    arm = values_text(numbers.arm_values, numbers.unit);
  } else if (outcome.floor && outcome.floor->shows_band()) {
    band = log_band_text(outcome.floor->band->noise_band);
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", escaped(outcome.id),
                     result_word(outcome), effect, band, escaped(base), escaped(arm),
                     outcome.entry);
}

std::string numbers_section(const ledger::Numbers& numbers, std::optional<double> holm_p) {
  std::string text =
      fmt::format("- {} (round by round): base {}, arm {}\n", escaped(numbers.metric),
                  escaped(values_text(numbers.base_values, numbers.unit)),
                  escaped(values_text(numbers.arm_values, numbers.unit)));
  const std::optional<ledger::Interval> band = shown_noise_band(numbers);
  if (numbers.effect) {
    text += fmt::format("- Effect: {} ({} is better)", signed_share_text(*numbers.effect),
                        numbers.higher_is_better ? "higher" : "lower");
    if (numbers.interval && (band || !numbers.noise_band)) {
      text += fmt::format("; 90% interval {}", interval_text(*numbers.interval));
    }
    if (numbers.claim) text += fmt::format("; claim +{}", share_text(*numbers.claim));
    text += "\n";
  }
  if (band) {
    text += fmt::format(
        "- Noise band: {}, from {}", interval_text(*band),
        noise_source_text(numbers.noise_rounds.value_or(0), numbers.base_values.size()));
    if (numbers.smallest_effect) {
      text += fmt::format("; smallest effect that this design sees +{}",
                          share_text(*numbers.smallest_effect));
    }
    text += "\n";
  } else if (numbers.noise_rounds) {
    text += fmt::format("- Noise band {}\n", unknown_band_text(*numbers.noise_rounds));
  }
  const auto slot = numbers.extra.find("slot_term");
  if (slot != numbers.extra.end() && slot->is_number()) {
    text += fmt::format("- Running second is worth {}\n", signed_share_text(slot->get<double>()));
  }
  if (const std::string beside = beside_text(numbers, holm_p); !beside.empty()) {
    text += fmt::format("- {}{}\n", static_cast<char>(std::toupper(beside[0])), beside.substr(1));
  }
  return text;
}

std::string row_list(const char* title, const std::vector<std::string>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("- {}:\n", title);
  for (size_t i = 0; i < std::min(rows.size(), kRowsShown); ++i) {
    text += fmt::format("  - {}\n", code(rows[i]));
  }
  if (rows.size() > kRowsShown) text += fmt::format("  - and {} more\n", rows.size() - kRowsShown);
  return text;
}

std::string proof_section(const ledger::Proof& proof) {
  const char* how = proof.observed ? "observed" : "as planned";
  std::string text = fmt::format("- Dispatch at the reach ({}): base `{}`, arm `{}`\n", how,
                                 proof.base_fingerprint, proof.arm_fingerprint);
  text += row_list("Only the base arm", proof.only_base);
  text += row_list("Only the other arm", proof.only_arm);
  return text + row_list("Side effects, outside the reach", proof.side_effects);
}

std::string tokens_section(const ledger::TokenCheck& tokens) {
  if (const std::string quality = quality_text(tokens); !quality.empty()) {
    return fmt::format("- Quality cost: {}\n", quality);
  }
  if (tokens.identical && tokens.compared == 0) return "- Tokens: none were generated\n";
  if (tokens.identical) return fmt::format("- Tokens: {}, identical\n", tokens.compared);
  if (!tokens.first_divergence) return "- Tokens: different\n";
  const ledger::Divergence& first = *tokens.first_divergence;
  std::string text = fmt::format("- Tokens differ first at {}: {} in the base arm, {} in the other",
                                 first.position, first.base_token, first.arm_token);
  if (first.margin) text += fmt::format(" (logit margin {:.3g})", *first.margin);
  return text + fmt::format("; prompt: {}\n",
                            first.prompt.empty() ? "random tokens" : escaped(first.prompt));
}

std::string memory_section(const ledger::VerdictBody& verdict) {
  std::string text;
  if (verdict.peaks) {
    text += fmt::format("- Peak memory: base {}, arm {}\n", format_bytes(verdict.peaks->base_bytes),
                        format_bytes(verdict.peaks->arm_bytes));
  }
  if (!verdict.memory_plan) return text;
  const ledger::MemoryPlan& plan = *verdict.memory_plan;
  text +=
      fmt::format("- Planned memory: base {}, arm {}, allowed {}\n", format_bytes(plan.base_bytes),
                  format_bytes(plan.arm_bytes), format_bytes(plan.budget_bytes));
  for (const ledger::PlanTerm& term : plan.arm_terms) {
    text += fmt::format("  - {}: {}\n", escaped(term.name), format_bytes(term.bytes));
  }
  return text;
}

std::string scope_section(const ledger::IdeaBody& idea) {
  const ledger::Scope& scope = idea.scope;
  std::string text = fmt::format(
      "- Scope: {} ({}, {}), {} {} {}, chunk {}, context {}, reach {}\n",
      escaped(idea.device_name.empty() ? scope.device.vendor : idea.device_name),
      escaped(device_key_text(scope.device)), escaped(scope.backend), escaped(idea.model_name),
      escaped(scope.model_family), escaped(scope.weight_format), scope.chunk, scope.context,
      escaped(scope.reach.empty() ? "none" : scope.reach));
  if (!scope.switch_key.empty()) {
    text += fmt::format("- Switch: {}: {} against {}\n", code(scope.switch_key),
                        code(scope.base_value), code(scope.arm_value));
  }
  if (!idea.force_reason.empty()) {
    text += fmt::format("- Measured although the ledger knew: {}\n", escaped(idea.force_reason));
  }
  return text;
}

std::string reproduce_section(const ledger::Reproduction& reproduce) {
  std::string text;
  if (!reproduce.command.empty()) {
    text += "- Command: " + code(reproduce.command);
    if (!reproduce.commit.empty()) text += fmt::format(", commit `{}`", reproduce.commit);
    text += "\n";
  }
  return text + "\nThe queue that reproduces it:\n\n" + code_block("yaml", reproduce.queue_text);
}

std::string section(const Outcome& outcome) {
  std::string text = fmt::format("## {}: {}\n\n", escaped(outcome.id), result_word(outcome));
  if (!outcome.idea.empty()) text += fmt::format("Idea: {}\n\n", escaped(outcome.idea));
  text += escaped(outcome.text) + "\n\n";
  const ledger::Entry* entry = outcome.record ? &*outcome.record : nullptr;
  if (entry != nullptr && entry->verdict) {
    const ledger::VerdictBody& verdict = *entry->verdict;
    if (verdict.numbers) text += numbers_section(*verdict.numbers, outcome.holm_p);
    if (verdict.proof) text += proof_section(*verdict.proof);
    if (verdict.tokens) text += tokens_section(*verdict.tokens);
    text += memory_section(verdict);
    text += row_list("Evidence", verdict.evidence);
  }
  if (entry != nullptr) {
    text += scope_section(entry->idea);
    const std::vector<std::string> open = entry->unfinished_because();
    if (!open.empty()) text += fmt::format("- Unfinished: {}\n", escaped(join(open, ", ")));
  }
  if (!outcome.design.empty()) text += fmt::format("- Design: {}\n", escaped(outcome.design));
  for (const std::string& note : outcome.notes) text += fmt::format("- Note: {}\n", escaped(note));
  if (entry != nullptr) text += reproduce_section(entry->idea.reproduce);
  if (text.back() != '\n' || !text.ends_with("\n\n")) text += "\n";
  return text;
}

}  // namespace

std::string markdown_page(const QueueOutcome& outcome) {
  std::string text = fmt::format("# Queue {}\n\n", escaped(outcome.queue));
  text += "| experiment | verdict | effect | noise band | base | arm | entry |\n";
  text += "|---|---|---|---|---|---|---|\n";
  for (const Outcome& experiment : outcome.experiments) text += table_row(experiment);
  text += "\n";
  for (const Outcome& experiment : outcome.experiments) text += section(experiment);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace reckon::experiment
