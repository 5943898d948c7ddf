// `reckon ledger`: list and show here, the others in ledger_*.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/open.h"
#include "cli/command.h"
#include "cli/ledger_access.h"
#include "cli/ledger_amend.h"
#include "cli/ledger_consult.h"
#include "cli/ledger_exchange.h"
#include "cli/ledger_filter.h"
#include "cli/ledger_json.h"
#include "cli/ledger_replay.h"
#include "cli/ledger_report.h"
#include "cli/ledger_text.h"
#include "cli/ledger_upkeep.h"
#include "cli/output.h"
#include "kernels/switches.h"
#include "ledger/open.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using ledger::Summary;

// This version's, and those of entries that it could not measure: another version's or engine's.
std::vector<std::string> known_switches(const std::vector<Summary>& entries) {
  std::vector<std::string> keys;
  for (const kernels::SwitchInfo& info : kernels::switch_registry()) keys.push_back(info.key);
  for (const Summary& entry : entries) {
    const std::string& key = entry.switch_key;
    if (!key.empty() && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

Result<ExitCode> list(const Cli& cli, const LedgerFilter& filter, bool json) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(std::vector<Summary> all, catalog->list());
  TRY(check_filter(filter, known_switches(all)));
  const bool empty = all.empty();
  const std::vector<Summary> entries = matching(std::move(all), filter);
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Summary& entry : entries) list.push_back(entry_summary_json(entry));
    print_json({{"ledger", store->location()}, {"entries", std::move(list)}});
  } else if (!entries.empty()) {
    fmt::print("{}", list_table(entries).text());
  } else {
    fmt::print("no {}entries in {}\n", empty ? "" : "matching ", store->location());
  }
  return kExitDone;
}

struct ShowOptions {
  std::string id;
  bool queue = false;
  bool json = false;
};

// The unit stands with the verdict; without one, the runner knows its metrics.
Result<std::string> unit_of(const Entry& entry) {
  if (entry.verdict && entry.verdict->numbers) return entry.verdict->numbers->unit;
  TRY_ASSIGN(const auto runner, adapters::open_runner("reckon"));
  for (const auto& metric : runner->metrics()) {
    if (metric.name == entry.idea.scope.metric) return metric.unit;
  }
  return std::string();
}

Result<ledger::Chain> chain_in(ledger::Catalog& catalog, const Entry& entry) {
  TRY_ASSIGN(std::vector<Summary> entries, catalog.list());
  return ledger::Chains(std::move(entries)).of(entry.id);
}

Result<ExitCode> show(const Cli& cli, const ShowOptions& options) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(const Entry entry, catalog->entry(options.id));
  if (options.queue) {
    const std::string& queue = entry.idea.reproduce.queue_text;
    if (queue.empty()) return failed(entry.id + " does not say how to reproduce it");
    fmt::print("{}", queue);
  } else if (options.json) {
    TRY_ASSIGN(const ledger::Chain chain, chain_in(*catalog, entry));
    print_json(entry_json(entry, chain));
  } else {
    PageContext context;
    TRY_ASSIGN(context.unit, unit_of(entry));
    context.ledger = ledger::shareable_location(cli.ledger);
    TRY_ASSIGN(context.chain, chain_in(*catalog, entry));
    fmt::print("{}", entry_page(entry, context));
  }
  return kExitDone;
}

void add_list(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("list", "the entries, oldest first");
  auto filter = std::make_shared<LedgerFilter>();
  auto json = std::make_shared<bool>(false);
  command->add_option("--switch", filter->switch_key, "of this switch")->type_name("KEY");
  command->add_option("--model", filter->model, "on models whose name or family has TEXT in it")
      ->type_name("TEXT");
  command->add_option("--verdict", filter->verdict, "WON, LOST, …, aa for identical arms, or open")
      ->type_name("VERDICT");
  command->add_option("--device", filter->device, "on devices whose name or key has TEXT in it")
      ->type_name("TEXT");
  command->add_flag("--json", *json, "print JSON");
  command->footer("Example:\n  reckon ledger list --switch prefill.tile_order --verdict LOST");
  command->callback([&cli, filter, json] {
    cli.action = [&cli, filter, json] { return list(cli, *filter, *json); };
  });
}

void add_show(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("show", "one entry in full");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("id", options->id, "the entry, or four or more characters that only it has")
      ->required()
      ->type_name("ID");
  CLI::Option* queue =
      command->add_flag("--queue", options->queue, "print the queue that reproduces it");
  command->add_flag("--json", options->json, "print JSON")->excludes(queue);
  command->footer(
      "Examples:\n"
      "  reckon ledger show rk-njf\n"
      "  reckon ledger show rk-njf --queue > again.yaml");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return show(cli, *options); }; });
}

}  // namespace

void add_ledger_command(Cli& cli) {
  CLI::App* group =
      cli.app.add_subcommand("ledger", "read, check and add to the ledger of experiments");
  group->require_subcommand(1);
  add_list(cli, *group);
  add_show(cli, *group);
  add_ledger_consult(cli, *group);
  add_ledger_amend(cli, *group);
  add_ledger_upkeep(cli, *group);
  add_ledger_exchange(cli, *group);
  add_ledger_replay(cli, *group);
  add_ledger_report(cli, *group);
  group->footer(
      "Examples:\n"
      "  reckon ledger list --verdict WON\n"
      "  reckon ledger consult queues/first.yaml");
}

}  // namespace reckon::cli
