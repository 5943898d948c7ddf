#include "cli/report_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "experiment/words.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using ledger::MemoryPlan;
using ledger::Proof;
using ledger::Scope;

constexpr std::string_view kRoot = "../";
constexpr size_t kRowsShown = 6;  // of each arm; the others fold away

Html diff_items(const std::vector<std::string>& rows, size_t from, size_t to, const char* style,
                const char* sign) {
  Html items;
  for (size_t i = from; i < std::min(to, rows.size()); ++i) {
    items += element("li", {{"class", style}}, element("b", sign) + element("code", rows[i]));
  }
  return items;
}

Html diff_list(const std::string& title, const std::vector<std::string>& rows, const char* style,
               const char* sign) {
  if (rows.empty()) return {};
  const auto list = [](const Html& items) { return element("ul", {{"class", "diff"}}, items); };
  Html markup = element("h3", fmt::format("{} ({})", title, rows.size()));
  markup += list(diff_items(rows, 0, kRowsShown, style, sign));
  if (rows.size() > kRowsShown) {
    markup += details(fmt::format("{} more", rows.size() - kRowsShown),
                      list(diff_items(rows, kRowsShown, rows.size(), style, sign)));
  }
  return markup;
}

std::string dispatch_sentence(const Proof& proof) {
  const bool same = proof.base_fingerprint == proof.arm_fingerprint;
  return fmt::format("{}, {}: base {}, arm {}.",
                     same ? "Both arms run the same code" : "The arms run different code",
                     proof.observed ? "as observed" : "as the plan predicts",
                     proof.base_fingerprint, proof.arm_fingerprint);
}

// Drawn to the scale of the largest.
Html bar(uint64_t bytes, uint64_t largest, const char* style) {
  const double share =
      largest == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(largest);
  return Html::raw(fmt::format(
      R"(<svg class="bar" aria-hidden="true" width="100%" height="10"><rect class="{}" width="{:.1f}%" height="10"/></svg>)",
      style, share));
}

void add_memory_row(HtmlTable& table, const char* label, uint64_t bytes, uint64_t largest,
                    const char* style) {
  table.add({html_text(label), bar(bytes, largest, style), html_text(format_bytes(bytes))});
}

Html plan_terms(const MemoryPlan& plan) {
  HtmlTable table("The arm's largest terms", {{"Term"}, {"Bytes", true}});
  for (const ledger::PlanTerm& term : plan.arm_terms) {
    table.add({html_text(term.name), html_text(format_bytes(term.bytes))});
  }
  return table.empty() ? Html() : element("h3", "The arm's largest terms") + table.html();
}

Html switches_table(const Scope& scope) {
  HtmlTable table("Other switches", {{"Switch"}, {"Base"}, {"Arm"}});
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [key, value] : scope.base_switches) values[key].first = value;
  for (const auto& [key, value] : scope.arm_switches) values[key].second = value;
  for (const auto& [key, value] : values) {
    table.add({element("code", key), element("code", value.first), element("code", value.second)});
  }
  return table.empty() ? Html() : element("h3", "Switches of both arms") + table.html();
}

std::string number_text(int64_t value) {
  return value == 0 ? "" : std::to_string(value);
}

Html figures(const Entry& entry) {
  const nlohmann::json& figures = entry.figures;
  if (!figures.is_object() || figures.empty()) return {};
  HtmlTable table("Figures as reported", {{"Figure"}, {"Value"}});
  const std::vector<std::string> series = reported_series(entry);
  for (const std::string& one : series) table.add({html_text("series"), html_text(one)});
  for (const auto& [name, value] : figures.items()) {
    if ((name == "series" || name == "effect") && !series.empty()) continue;
    table.add(
        {html_text(name), html_text(value.is_string() ? value.get<std::string>() : value.dump())});
  }
  return element("h3", "Figures as reported") + table.html();
}

Html chain_list(const std::vector<ledger::Summary>& others, const ReportContext& context) {
  Html items;
  for (const ledger::Summary& other : others) {
    Html item = entry_link(other.id, context, kRoot);
    if (const auto found = context.entries.find(other.id); found != context.entries.end()) {
      const Entry& entry = *found->second;
      const std::string effect = effect_of(entry);
      item += html_text(" ") + badge_with_marks(entry);
      item += html_text(fmt::format(" {}{}{}, {}", effect, effect.empty() ? "" : ", ",
                                    title_of(entry), day_of(entry.updated)));
    } else {
      item += html_text(" (not in this ledger)");
    }
    items += element("li", item);
  }
  return items.empty() ? Html() : element("ul", {{"class", "chain"}}, items);
}

Html notes(const Entry& entry, const ReportContext& context) {
  Html items;
  for (const ledger::Note& note : entry.notes) {
    items += element("li", element("time", {{"datetime", note.time}}, day_of(note.time)) +
                               html_text(fmt::format(" {}: ", note.writer)) +
                               linked_text(note.text, context, kRoot));
  }
  return items.empty() ? Html() : element("ul", items);
}

std::string commands(const Entry& entry, const std::string& ledger) {
  const std::string reckon =
      ledger.empty() ? "reckon" : fmt::format("reckon --ledger {}", shell_quoted(ledger));
  return fmt::format(
      "{0} ledger show {1} --queue > again.yaml\n"
      "{0} queue run again.yaml --force 'reproduce'",
      reckon, entry.id);
}

}  // namespace

Html dispatch_section(const Entry& entry) {
  if (!entry.verdict || !entry.verdict->proof) return {};
  const Proof& proof = *entry.verdict->proof;
  Html content = element("p", dispatch_sentence(proof));
  content += diff_list("Only the base arm", proof.only_base, "minus", "\xe2\x88\x92");
  content += diff_list("Only the other arm", proof.only_arm, "plus", "+");
  content += diff_list("Side effects, outside the reach", proof.side_effects, "side", "!");
  return section("dispatch", "Dispatch", content);
}

Html tokens_section(const Entry& entry) {
  if (!entry.verdict || !entry.verdict->tokens) return {};
  const ledger::TokenCheck& tokens = *entry.verdict->tokens;
  HtmlFacts facts;
  facts.add("Promised", entry.idea.scope.tokens_policy);
  if (tokens.identical) {
    facts.add("Compared", tokens.compared == 0
                              ? "none were generated"
                              : fmt::format("{}, identical", counted(tokens.compared, "token")));
  } else if (!tokens.first_divergence) {
    facts.add("Compared", "they differ");
  } else {
    const ledger::Divergence& first = *tokens.first_divergence;
    facts.add(
        "First divergence",
        fmt::format("position {}: {} in the base arm, {} in the other{}", first.position,
                    first.base_token, first.arm_token,
                    first.margin ? fmt::format(" (logit margin {:.3g})", *first.margin) : ""));
    facts.add("Prompt", first.prompt.empty() ? "random tokens" : first.prompt);
  }
  if (tokens.mean_kl) facts.add("Mean KL", fmt::format("{:.3g} nats a token", *tokens.mean_kl));
  if (tokens.perplexity_change) {
    facts.add("Perplexity", signed_share_text(*tokens.perplexity_change));
  }
  return section("tokens", "Tokens", facts.html());
}

Html memory_section(const Entry& entry) {
  if (!entry.verdict) return {};
  const auto& peaks = entry.verdict->peaks;
  const auto& plan = entry.verdict->memory_plan;
  if (!peaks && !plan) return {};
  HtmlTable table("Memory of both arms", {{"Arm"}, {"To scale"}, {"Bytes", true}});
  uint64_t largest = peaks ? std::max(peaks->base_bytes, peaks->arm_bytes) : 0;
  if (plan) largest = std::max({largest, plan->base_bytes, plan->arm_bytes, plan->budget_bytes});
  if (peaks) {
    add_memory_row(table, "Base, peak", peaks->base_bytes, largest, "base");
    add_memory_row(table, "Arm, peak", peaks->arm_bytes, largest, "arm");
  }
  Html content;
  if (plan) {
    add_memory_row(table, "Base, planned", plan->base_bytes, largest, "base");
    add_memory_row(table, "Arm, planned", plan->arm_bytes, largest, "arm");
    add_memory_row(table, "Allowed", plan->budget_bytes, largest, "limit");
  }
  content += table.html();
  if (plan) content += plan_terms(*plan);
  return section("memory", "Memory", content);
}

Html scope_section(const Entry& entry, const ReportContext& context) {
  const Scope& scope = entry.idea.scope;
  HtmlFacts facts;
  const auto listed = [&](Facet facet) {
    const std::string value = facet_value(facet, entry);
    return link(std::string(kRoot) + list_file(context.facets->name(facet, value), ""), value);
  };
  facts.add("Device", listed(Facet::kDevice));
  facts.add("Model", listed(Facet::kModel));
  facts.add("Family", scope.model_family);
  facts.add("Weights", scope.weight_format);
  facts.add("Backend", scope.backend);
  facts.add("Metric", scope.metric);
  facts.add("Workload", scope.workload_class);
  facts.add("Chunk", number_text(scope.chunk));
  facts.add("Rows", number_text(scope.rows));
  facts.add("Context", number_text(scope.context));
  facts.add("Reach", scope.reach);
  facts.add("Tokens", scope.tokens_policy);
  facts.add("Memory limit", scope.memory_limit);
  return section("scope", "Scope", facts.html() + switches_table(scope));
}

Html environment_section(const Entry& entry) {
  const ledger::Environment* environment = nullptr;
  if (entry.verdict) environment = &entry.verdict->environment;
  if (environment == nullptr && !entry.rounds.empty()) {
    environment = &entry.rounds.back().environment;
  }
  if (environment == nullptr) return {};
  HtmlFacts facts;
  facts.add("Driver", environment->driver);
  facts.add("Kernel", environment->kernel);
  facts.add("Compiler", environment->compiler);
  if (!environment->commit.empty()) {
    facts.add("Commit", environment->commit + (environment->dirty ? ", modified" : ""));
  }
  for (const auto& [name, value] : environment->readings) {
    std::string words = name;  // so that it breaks between them
    std::replace(words.begin(), words.end(), '_', ' ');
    facts.add(words, value);
  }
  Html sources;
  if (entry.verdict && !entry.verdict->sources.empty()) {
    HtmlTable table("Sources in reach", {{"Variant"}, {"Source hash"}});
    for (const auto& [name, hash] : entry.verdict->sources) {
      table.add({element("code", name), element("code", hash)});
    }
    sources = details("Source hashes of the variants in reach", table.html());
  }
  return section("environment", "Environment", facts.html() + sources);
}

Html history_section(const Entry& entry, const ReportContext& context) {
  const ledger::Chain chain = context.chains->of(entry.id);
  HtmlFacts facts;
  facts.add("Superseded by", chain_list(chain.superseded_by, context));
  facts.add("Supersedes", chain_list(chain.supersedes, context));
  facts.add("Lever of", chain_list(chain.lever_of, context));
  if (entry.imported) facts.add("Imported from", linked_text(entry.import_source, context, kRoot));
  facts.add("Notes", notes(entry, context));
  facts.add("Recorded", fmt::format("{} by {}", entry.created, entry.writer));
  if (entry.updated != entry.created) facts.add("Last event", entry.updated);
  return section("history", "History", facts.html() + figures(entry));
}

Html reproduce_section(const Entry& entry, const ReportContext& context) {
  const ledger::Reproduction& reproduce = entry.idea.reproduce;
  Html content;
  if (!reproduce.queue_text.empty()) {
    content += element("pre", element("code", html_lines(commands(entry, context.ledger))));
  }
  HtmlFacts facts;
  if (!reproduce.command.empty()) facts.add("Command", element("code", reproduce.command));
  if (!reproduce.commit.empty()) facts.add("Commit", element("code", reproduce.commit));
  content += facts.html();
  if (!reproduce.queue_text.empty()) {
    content +=
        details("The queue", element("pre", element("code", html_lines(reproduce.queue_text))));
  }
  content += element("p", {{"class", "twin"}},
                     html_text("The same as text: ") + link(entry.id + ".txt", entry.id + ".txt") +
                         html_text(", or ") + element("code", "reckon ledger show " + entry.id) +
                         html_text("."));
  return section("reproduce", "Reproduce", content);
}

}  // namespace reckon::cli
