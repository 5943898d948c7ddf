#include "cli/ledger_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "adapters/open.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/ledger_access.h"
#include "cli/ledger_filter.h"
#include "cli/ledger_text.h"
#include "cli/output.h"
#include "cli/report_entry.h"
#include "cli/report_folder.h"
#include "cli/report_index.h"
#include "cli/terminal.h"
#include "kernels/switches.h"
#include "ledger/open.h"
#include "ledger/summary.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using Entries = std::vector<const Entry*>;

struct ReportOptions {
  std::string folder;
  LedgerFilter filter;
  bool force = false;
  bool json = false;
};

Result<Metrics> known_metrics() {
  TRY_ASSIGN(const auto runner, adapters::open_runner("reckon"));
  Metrics metrics;
  for (const auto& metric : runner->metrics()) {
    metrics[metric.name] = {metric.unit, metric.higher_is_better};
  }
  return metrics;
}

std::vector<std::string> known_switches(const ledger::Ledger& ledger) {
  std::set<std::string> keys;
  for (const kernels::SwitchInfo& info : kernels::switch_registry()) keys.insert(info.key);
  for (const Entry& entry : ledger.entries) keys.insert(entry.idea.scope.switch_key);
  keys.erase("");
  return {keys.begin(), keys.end()};
}

// Newest first: by the last event, then by id.
Result<Entries> chosen(const ledger::Ledger& ledger, const LedgerFilter& filter) {
  TRY(check_filter(filter, known_switches(ledger)));
  Entries entries;
  for (const Entry& entry : ledger.entries) {
    if (!matching({ledger::summary_of(entry)}, filter).empty()) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->updated != b->updated ? a->updated > b->updated : a->id < b->id;
  });
  return entries;
}

std::string filter_text(const LedgerFilter& filter) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) parts.push_back(fmt::format("{} {}", name, value));
  };
  add("switch", filter.switch_key);
  add("model", filter.model);
  add("verdict", filter.verdict);
  add("device", filter.device);
  return parts.empty() ? "" : fmt::format(" Only entries of {}.", join(parts, ", "));
}

// No clock: the same ledger gives the same report.
std::string footer_text(const Entries& entries, const LedgerFilter& filter) {
  std::string text = "A report of a Reckon ledger";
  if (!entries.empty()) text += " as of " + entries.front()->updated;
  return text + "." + filter_text(filter);
}

// Styles for a terminal do not belong in a file.
std::string without_escapes(std::string_view text) {
  std::string plain;
  bool escape = false;
  for (const char c : text) {
    if (c == '\033') escape = true;
    if (!escape) plain += c;
    if (c == 'm') escape = false;
  }
  return plain;
}

std::string text_twin(const Entry& entry, const ReportContext& context) {
  PageContext page;
  page.chain = context.chains->of(entry.id);
  page.unit = unit_of(entry, context.metrics);
  page.ledger = context.ledger;
  return without_escapes(entry_page(entry, page)) + pairs_text(entry, context);
}

struct EntryPages {
  std::string html;
  std::string text;
};

// Made by all threads, a batch at a time, and written in order.
Status write_entries(const Entries& entries, const ReportContext& context, StatusLine& progress,
                     ReportFolder& folder) {
  constexpr size_t kBatch = 512;
  ThreadPool threads(0);
  for (size_t from = 0; from < entries.size(); from += kBatch) {
    std::vector<EntryPages> pages(std::min(kBatch, entries.size() - from));
    threads.parallel_for(static_cast<int64_t>(pages.size()), [&](int64_t task) {
      const auto at = static_cast<size_t>(task);
      const Entry& entry = *entries[from + at];
      pages[at] = {entry_document(entry, context), text_twin(entry, context)};
    });
    for (size_t i = 0; i < pages.size(); ++i) {
      const std::string& id = entries[from + i]->id;
      TRY(folder.write(entry_file(id), pages[i].html));
      TRY(folder.write(entry_text_file(id), pages[i].text));
    }
    progress.show(fmt::format("{} of {} entries", from + pages.size(), entries.size()));
  }
  return {};
}

Status write_pages(const Entries& entries, const ReportContext& context, ReportFolder& folder) {
  StatusLine progress;
  TRY(write_entries(entries, context, progress, folder));
  TRY(make_lists(entries, context, [&](const std::string& file, std::string_view text) {
    progress.show(file);
    return folder.write(file, text);
  }));
  TRY(folder.write("search.js", search_data(entries)));
  TRY(folder.write("index.txt", index_text(entries)));
  return folder.write("index.html", index_document(entries, context));
}

Result<ExitCode> report(const Cli& cli, const ReportOptions& options) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(ledger::ReadReport events, store->read());
  print_warnings(events.warnings);
  const ledger::Ledger ledger = ledger::fold(events.events);
  print_warnings(ledger.warnings);
  events = {};
  TRY_ASSIGN(const Entries entries, chosen(ledger, options.filter));
  std::vector<ledger::Summary> summaries;
  for (const Entry& entry : ledger.entries) summaries.push_back(ledger::summary_of(entry));
  const ledger::Chains chains(std::move(summaries));
  const FacetNames facets(entries);
  ReportContext context;
  context.chains = &chains;
  for (const Entry& entry : ledger.entries) context.entries.emplace(entry.id, &entry);
  context.facets = &facets;
  for (const Entry* entry : entries) context.shown.insert(entry->id);
  TRY_ASSIGN(context.metrics, known_metrics());
  context.ledger = ledger::shareable_location(cli.ledger);
  context.footer = footer_text(entries, options.filter);
  TRY_ASSIGN(
      ReportFolder folder,
      ReportFolder::open(options.folder, options.force ? Occupied::kAccept : Occupied::kRefuse));
  TRY(write_pages(entries, context, folder));
  TRY_ASSIGN(const size_t removed, folder.finish());
  const std::string index = options.folder + "/index.html";
  if (options.json) {
    print_json({{"ledger", store->location()},
                {"index", index},
                {"entries", entries.size()},
                {"files", folder.files()},
                {"removed", removed}});
  } else {
    fmt::print("{} {} in {}\n", entries.size(), entries.size() == 1 ? "entry" : "entries", index);
  }
  return kExitDone;
}

}  // namespace

void add_ledger_report(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("report", "the ledger as a folder of web pages");
  auto options = std::make_shared<ReportOptions>();
  command
      ->add_option("-o,--output", options->folder,
                   "a folder that is new, empty, or from an earlier report")
      ->required()
      ->type_name("DIR");
  LedgerFilter& filter = options->filter;
  command->add_option("--switch", filter.switch_key, "only entries of this switch")
      ->type_name("KEY");
  command->add_option("--model", filter.model, "on models whose name or family has TEXT in it")
      ->type_name("TEXT");
  command->add_option("--verdict", filter.verdict, "WON, LOST, …, aa for identical arms, or open")
      ->type_name("VERDICT");
  command->add_option("--device", filter.device, "on devices whose name or key has TEXT in it")
      ->type_name("TEXT");
  command->add_flag("--force", options->force, "write into a folder that holds other files, too");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Examples:\n"
      "  reckon ledger report -o report\n"
      "  reckon ledger report -o lost --verdict LOST");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return report(cli, *options); }; });
}

}  // namespace reckon::cli
