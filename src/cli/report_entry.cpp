#include "cli/report_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/report_evidence.h"
#include "experiment/beside.h"
#include "experiment/verdict_text.h"
#include "experiment/words.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using ledger::MeasuredBody;
using ledger::Numbers;

constexpr std::string_view kRoot = "../";

Html arms_line(const Entry& entry) {
  const ledger::Scope& scope = entry.idea.scope;
  if (scope.switch_key.empty()) return element("p", {{"class", "arms"}}, arms_of(entry));
  Html line = element("code", scope.switch_key);
  line += html_text(" base ") + element("code", scope.base_value);
  line += Html::raw(" \xe2\x86\x92 arm ") + element("code", scope.arm_value);
  return element("p", {{"class", "arms"}}, line);
}

// The word of the sentence stands in the badge.
Html verdict_line(const Entry& entry) {
  std::string sentence = sentence_of(entry);
  const std::string word = verdict_word(entry);
  if (sentence.starts_with(word)) sentence.erase(0, word.size());
  if (sentence.starts_with(": ")) sentence.erase(0, 2);
  if (entry.imported && entry.verdict) sentence += " (as reported)";
  const Html day = entry.verdict_time.empty()
                       ? Html()
                       : html_text(" ") + element("time", {{"datetime", entry.verdict_time}},
                                                  "(" + day_of(entry.verdict_time) + ")");
  return element("p", {{"class", "verdict"}}, badge(entry) + html_text(" " + sentence) + day);
}

Html quality_line(const Entry& entry) {
  const std::string quality = quality_of(entry);
  if (quality.empty()) return {};
  return element("p", {{"class", "quality"}},
                 element("strong", "Quality cost: ") + html_text(quality + "."));
}

Html notice_list(const Entry& entry, const ReportContext& context) {
  Html items;
  for (const Notice& notice : notices_of(entry)) {
    Html item = element("strong", notice.title);
    if (!notice.entry.empty()) {
      item += html_text(" by ") + entry_link(notice.entry, context, kRoot);
    }
    if (!notice.text.empty()) {
      item += html_text(": ") + linked_text(notice.text, context, kRoot);
    }
    items += element("li", item);
  }
  return items.empty() ? Html() : element("ul", {{"class", "notices"}}, items);
}

Html no_numbers_note(const Entry& entry) {
  const ledger::Verdict verdict = entry.verdict->verdict;
  std::string text;
  if (verdict == ledger::Verdict::kVoid) text = "Nothing was compared, so no number is a result.";
  if (verdict == ledger::Verdict::kBroke) {
    text = "The arms do not compute the same, so no ratio is a result.";
  }
  if (verdict == ledger::Verdict::kOutOfMemory) {
    text = "The arm does not fit, so nothing was compared.";
  }
  if (!entry.rounds.empty()) {
    text += fmt::format(" The samples of {} stay in the ledger.",
                        counted(static_cast<int64_t>(entry.rounds.size()), "round"));
  }
  return element("p", {{"class", "none"}}, text);
}

Html list_of(const std::vector<std::string>& texts, const ReportContext& context) {
  Html items;
  for (const std::string& text : texts) items += element("li", linked_text(text, context, kRoot));
  return items.empty() ? Html() : element("ul", items);
}

Html codes(const std::vector<std::string>& texts) {
  Html items;
  for (const std::string& text : texts) items += element("li", element("code", text));
  return items.empty() ? Html() : element("ul", items);
}

Html missing_mechanism(const Entry& entry) {
  const std::string note = fmt::format("reckon ledger note {} --mechanism '…'", entry.id);
  return element("span", {{"class", "none"}},
                 "Nobody has said why yet, so the entry counts as unfinished. To say it:") +
         element("pre", element("code", note));
}

Html why_section(const Entry& entry, const ReportContext& context) {
  if (entry.idea.kind == ledger::EntryKind::kFloor || !entry.verdict) return {};
  const ledger::VerdictBody& verdict = *entry.verdict;
  HtmlFacts facts;
  if (!verdict.mechanism.empty()) {
    facts.add("Mechanism", linked_text(verdict.mechanism, context, kRoot));
  } else if (!entry.imported) {
    facts.add("Mechanism", missing_mechanism(entry));
  }
  facts.add("Evidence", list_of(verdict.evidence, context));
  facts.add("Conditions", linked_text(verdict.conditions, context, kRoot));
  facts.add("Revisit when", codes(verdict.revisit_when));
  facts.add("Lever", linked_text(verdict.lever, context, kRoot));
  if (!verdict.lever_entry.empty()) {
    facts.add("Pulled by", entry_link(verdict.lever_entry, context, kRoot));
  }
  return section("why", "Why", facts.html());
}

std::string slot_text(const Numbers& numbers) {
  const auto slot = numbers.extra.find("slot_term");
  if (slot == numbers.extra.end() || !slot->is_number()) return "";
  return "worth " + signed_share_text(slot->get<double>());
}

Html number_facts(const Numbers& numbers) {
  HtmlFacts facts;
  const auto band = experiment::shown_noise_band(numbers);
  if (numbers.effect) {
    facts.add("Effect", fmt::format("{} {} ({} is better)", signed_share_text(*numbers.effect),
                                    numbers.metric, numbers.higher_is_better ? "higher" : "lower"));
  }
  if (numbers.interval && (band || !numbers.noise_band)) {
    facts.add("90% interval", fmt::format("{} to {}", signed_share_text(numbers.interval->low),
                                          signed_share_text(numbers.interval->high)));
  }
  if (band) {
    std::string text = experiment::band_text(band->low, band->high);
    if (numbers.noise_rounds) {
      text += ", from " +
              experiment::noise_source_text(*numbers.noise_rounds, numbers.base_values.size());
    }
    facts.add("Noise band", text);
  } else if (numbers.noise_rounds) {
    facts.add("Noise band", experiment::unknown_band_text(*numbers.noise_rounds));
  }
  if (numbers.claim) facts.add("Claim", signed_share_text(*numbers.claim));
  if (numbers.smallest_effect && band) {
    facts.add("Seen from", signed_share_text(*numbers.smallest_effect) + " on, by this design");
  }
  facts.add("Running second", slot_text(numbers));
  constexpr std::string_view kBeside = "beside the verdict: ";
  std::string beside = experiment::beside_text(numbers);
  if (beside.starts_with(kBeside)) beside.erase(0, kBeside.size());
  facts.add("Beside it", beside);
  facts.add("Drift", experiment::drift_text(numbers));
  return facts.html();
}

// The column says the unit, but for bytes, whose sizes differ in it.
std::string value_text(double value, const std::string& unit) {
  return values_text({value}, unit == "B" ? unit : "");
}

HtmlColumn value_column(const char* arm, const std::string& unit) {
  return {unit.empty() || unit == "B" ? arm : fmt::format("{}, {}", arm, unit), true};
}

// "2026-09-14 08:30".
Html minute(const std::string& time) {
  std::string text = time.substr(0, 16);
  if (text.size() > 10) text[10] = ' ';
  return element("time", {{"datetime", time}}, text);
}

// Long tables fold away; the picture has them.
Html folded(const std::string& summary, const Html& table, size_t rows) {
  constexpr size_t kShownRounds = 8;
  return rows > kShownRounds ? details(summary, table) : table;
}

Html rounds_table(const Entry& entry, const Plot& plot, const std::string& unit) {
  HtmlTable table("Rounds", {{"Round"},
                             value_column("Base", unit),
                             value_column("Arm", unit),
                             {"Effect", true},
                             {"Pairs", true},
                             {"Started"}});
  for (size_t i = 0; i < entry.rounds.size(); ++i) {
    const ledger::Round& round = entry.rounds[i].round;
    const PlotRound& plotted = plot.rounds[i];
    table.add({html_text(std::to_string(i + 1)), html_text(value_text(round.base_value, unit)),
               html_text(value_text(round.arm_value, unit)),
               html_text(signed_share_text(std::expm1(plotted.log)) +
                         (plotted.counted ? "" : " (not in the verdict)")),
               html_text(std::to_string(plotted.pairs.size())), minute(round.started)});
  }
  const size_t rounds = entry.rounds.size();
  return folded(counted(static_cast<int64_t>(rounds), "round"), table.html(), rounds);
}

Html pairs_table(const Entry& entry, const std::string& unit) {
  HtmlTable table("Every pair", {{"Round"},
                                 {"Pair"},
                                 {"First"},
                                 value_column("Base", unit),
                                 value_column("Arm", unit),
                                 {"Counted"}});
  int64_t pairs = 0;
  for (size_t i = 0; i < entry.rounds.size(); ++i) {
    size_t number = 0;
    for (const ledger::PairSample& pair : entry.rounds[i].round.pairs) {
      table.add(
          {html_text(std::to_string(i + 1)), html_text(pair.warmup ? "" : std::to_string(++number)),
           html_text(pair.arm_first ? "arm" : "base"), html_text(value_text(pair.base, unit)),
           html_text(value_text(pair.arm, unit)), html_text(pair.warmup ? "no, warm-up" : "yes")});
      ++pairs;
    }
  }
  if (table.empty()) return {};
  return details("The samples of " + counted(pairs, "pair"), table.html());
}

Html stated_rounds_table(const Numbers& numbers) {
  const std::string& unit = numbers.unit;
  HtmlTable table("Rounds", {{"Round"}, value_column("Base", unit), value_column("Arm", unit)});
  if (numbers.base_values.size() != numbers.arm_values.size()) return {};
  for (size_t i = 0; i < numbers.base_values.size(); ++i) {
    table.add({html_text(std::to_string(i + 1)),
               html_text(value_text(numbers.base_values[i], unit)),
               html_text(value_text(numbers.arm_values[i], unit))});
  }
  return table.empty() ? Html() : table.html();
}

Html plot_section(const Entry& entry, const ReportContext& context) {
  if (const std::optional<Plot> plot = plot_of(entry, context.metrics)) {
    if (entry.rounds.empty()) {
      const Html table = stated_rounds_table(*entry.verdict->numbers);
      return section("rounds", "Rounds, as stated", plot_figure(*plot) + table);
    }
    const std::string unit = unit_of(entry, context.metrics);
    return section(
        "rounds", "Every pair and round",
        plot_figure(*plot) + rounds_table(entry, *plot, unit) + pairs_table(entry, unit));
  }
  if (entry.verdict && !shows_numbers(entry)) {
    return section("rounds", "No number", no_numbers_note(entry));
  }
  return {};
}

Html numbers_section(const Entry& entry) {
  if (!entry.verdict || !entry.verdict->numbers || !shows_numbers(entry)) return {};
  return section("numbers", "The number", number_facts(*entry.verdict->numbers));
}

// Side by side where there is room.
Html columns(std::string_view style, const Html& left, const Html& right) {
  if (left.empty() || right.empty()) return left + right;
  return element("div", {{"class", style}}, element("div", left) + element("div", right));
}

Html navigation(const Entry& entry, const ReportContext& context) {
  Html trail;
  for (const Facet facet : kFacets) {
    const std::string value = facet_value(facet, entry);
    const std::string& name = context.facets->name(facet, value);
    trail += link(std::string(kRoot) + list_file(name, ""), value);
  }
  return trail;
}

}  // namespace

std::string entry_document(const Entry& entry, const ReportContext& context) {
  Html head = element("h1", title_of(entry));
  head += arms_line(entry) + verdict_line(entry) + quality_line(entry);
  head += notice_list(entry, context);
  Html main = element("div", {{"class", "head"}}, head);
  main += columns("split", plot_section(entry, context),
                  why_section(entry, context) + numbers_section(entry));
  main += dispatch_section(entry);
  main += columns("even", tokens_section(entry), memory_section(entry));
  main += columns("even", scope_section(entry, context),
                  environment_section(entry) + history_section(entry, context));
  main += reproduce_section(entry, context);
  Document document;
  document.title = fmt::format("{}: {} ({})", verdict_word(entry), title_of(entry), entry.id);
  document.root = kRoot;
  document.navigation = navigation(entry, context);
  document.main = main;
  document.footer = context.footer;
  return document_text(document);
}

std::string pairs_text(const Entry& entry, const ReportContext& context) {
  const std::optional<Plot> plot = plot_of(entry, context.metrics);
  if (!plot) return "";
  std::string text;
  for (size_t i = 0; i < plot->rounds.size(); ++i) {
    const PlotRound& round = plot->rounds[i];
    if (round.pairs.empty()) continue;
    std::vector<std::string> pairs;
    for (const PlotPair& pair : round.pairs) {
      pairs.push_back(signed_share_text(std::expm1(pair.log)) + (pair.arm_first ? "*" : ""));
    }
    text += fmt::format("round {:<8}{}\n", i + 1, join(pairs, " "));
  }
  if (text.empty()) return "";
  return "\nEach pair, arm against base; * the arm ran first.\n" + text;
}

}  // namespace reckon::cli
