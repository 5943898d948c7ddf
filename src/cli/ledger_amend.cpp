#include "cli/ledger_amend.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/ledger_access.h"
#include "cli/output.h"
#include "ledger/amend.h"
#include "ledger/writer.h"

namespace reckon::cli {
namespace {

using ledger::Catalog;
using ledger::Event;
using ledger::Signature;

struct AmendOptions {
  std::string id;
  std::string reason;
  std::string by;
  ledger::NoteBody note;
  bool json = false;
};

using MakeEvent = std::function<Result<Event>(Catalog&, const AmendOptions&, const Signature&)>;

Result<ExitCode> amend(const Cli& cli, const AmendOptions& options, const MakeEvent& make) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(const Event event,
             make(*catalog, options, {ledger::default_writer(), utc_timestamp()}));
  TRY_ASSIGN(const ledger::AppendReport report, store->append({&event, 1}));
  print_warnings(report.warnings);
  const std::string what(event_type_name(event.type));
  if (options.json) {
    print_json({{"ledger", store->location()},
                {"entry", event.entry},
                {"event", what},
                {"time", event.time},
                {"writer", event.writer}});
  } else {
    fmt::print("{}: {} by {}\n", event.entry, what == "note" ? "noted" : what, event.writer);
  }
  return kExitDone;
}

CLI::App* add_command(Cli& cli, CLI::App& group, const char* name, const char* help,
                      const char* example, const std::shared_ptr<AmendOptions>& options,
                      MakeEvent make) {
  CLI::App* command = group.add_subcommand(name, help);
  command->add_option("id", options->id, "the entry, or four or more characters that only it has")
      ->required()
      ->type_name("ID");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(fmt::format("Example:\n  reckon ledger {} {}", name, example));
  command->callback([&cli, options, make = std::move(make)] {
    cli.action = [&cli, options, make] { return amend(cli, *options, make); };
  });
  return command;
}

void add_reason(CLI::App& command, AmendOptions& options) {
  command.add_option("--reason", options.reason, "why, in a sentence")
      ->required()
      ->type_name("TEXT");
}

void add_note(Cli& cli, CLI::App& group) {
  auto options = std::make_shared<AmendOptions>();
  ledger::NoteBody& note = options->note;
  CLI::App* command =
      add_command(cli, group, "note", "add a text, or what was learnt about a verdict later",
                  "rk-njf --mechanism 'the tile is bound by the multiply-accumulates'", options,
                  [](Catalog& catalog, const AmendOptions& given, const Signature& signature) {
                    return ledger::add_note(catalog, given.id, given.note, signature);
                  });
  command->add_option("text", note.text, "for people")->type_name("TEXT");
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    command->add_option(name, value, help)->type_name(type)->allow_extra_args(false);
  };
  add("--mechanism", note.mechanism, "why, in a sentence that a colleague can check", "TEXT");
  add("--evidence", note.evidence, "what the mechanism rests on (repeatable)", "TEXT");
  add("--revisit-when", note.revisit_when,
      "what would make it worth measuring again: 'chunk >= 2048' (repeatable)", "CONDITION");
  add("--conditions", note.conditions, "the same in free text", "TEXT");
  add("--lever", note.lever, "what the result points at", "TEXT");
  add("--lever-entry", note.lever_entry, "the entry that pulled it", "ID");
}

void add_status_changes(Cli& cli, CLI::App& group) {
  auto overturned = std::make_shared<AmendOptions>();
  add_reason(*add_command(cli, group, "overturn", "say that an entry's result was wrong",
                          "rk-njf --reason 'the clock had been set back'", overturned,
                          [](Catalog& catalog, const AmendOptions& given, const Signature& by) {
                            return ledger::overturn(catalog, given.id, given.reason, by);
                          }),
             *overturned);
  auto reopened = std::make_shared<AmendOptions>();
  add_reason(*add_command(cli, group, "reopen", "say that an entry is worth measuring again",
                          "rk-njf --reason 'the new driver schedules blocks otherwise'", reopened,
                          [](Catalog& catalog, const AmendOptions& given, const Signature& by) {
                            return ledger::reopen(catalog, given.id, given.reason, by);
                          }),
             *reopened);
  auto superseded = std::make_shared<AmendOptions>();
  CLI::App* command =
      add_command(cli, group, "supersede", "say that another entry answers better",
                  "rk-njf --by rk-7p6v --reason 'measured at all chunk sizes'", superseded,
                  [](Catalog& catalog, const AmendOptions& given, const Signature& by) {
                    return ledger::supersede(catalog, given.id, given.by, given.reason, by);
                  });
  command->add_option("--by", superseded->by, "the entry that answers better")
      ->required()
      ->type_name("ID");
  add_reason(*command, *superseded);
}

}  // namespace

void add_ledger_amend(Cli& cli, CLI::App& group) {
  add_note(cli, group);
  add_status_changes(cli, group);
}

}  // namespace reckon::cli
