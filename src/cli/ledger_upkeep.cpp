#include "cli/ledger_upkeep.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/ledger_access.h"
#include "cli/ledger_cited.h"
#include "cli/output.h"
#include "ledger/lint.h"
#include "ledger/merge.h"
#include "ledger/open.h"

namespace reckon::cli {
namespace {

std::string count_of(size_t count, std::string_view noun) {
  return counted(static_cast<int64_t>(count), noun);
}

Result<ExitCode> verify(const Cli& cli, bool json) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const ledger::VerifyReport report, store->verify());
  if (json) {
    print_json({{"ledger", store->location()},
                {"ok", report.ok()},
                {"events", report.events},
                {"errors", report.errors},
                {"notes", report.notes}});
  } else {
    for (const std::string& error : report.errors) fmt::print("{}\n", error);
    for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
    if (report.ok()) {
      fmt::print("ok: {} in {}\n", count_of(report.events, "event"), store->location());
    }
  }
  if (report.ok()) return kExitDone;
  return failed(fmt::format("{} beside {} in {}", count_of(report.errors.size(), "error"),
                            count_of(report.events, "good event"), store->location()));
}

Result<ExitCode> merge(const Cli& cli, const std::string& from, bool json) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto other, ledger::open_store(from));
  TRY_ASSIGN(const ledger::MergeReport report, ledger::merge(*store, *other));
  print_warnings(report.warnings);
  if (report.added + report.known + report.left_out.size() == 0) {
    return usage_error(fmt::format("{}: no ledger there, or an empty one", from));
  }
  if (json) {
    print_json({{"ledger", store->location()},
                {"from", other->location()},
                {"added", report.added},
                {"known", report.known},
                {"left_out", report.left_out}});
  } else {
    for (const std::string& line : report.left_out) fmt::print("left out: {}\n", line);
    fmt::print("{} added to {}, {} known already\n", count_of(report.added, "event"),
               store->location(), report.known);
  }
  if (report.left_out.empty()) return kExitDone;
  return failed(fmt::format("{} of {} left out; all others are merged",
                            count_of(report.left_out.size(), "line"), from));
}

void print_lint(const ledger::LintReport& report) {
  for (const std::string& error : report.errors) fmt::print("{}\n", error);
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  fmt::print("{}, {} unmeasured, {} looked at\n", count_of(report.citations, "citation"),
             report.unmeasured, count_of(report.verdicts, "verdict"));
}

Result<ExitCode> lint(const Cli& cli, const std::vector<std::string>& paths, bool json) {
  TRY_ASSIGN(const std::vector<ledger::Citation> citations, read_citations(paths));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const ledger::ReadReport read, store->read());
  const ledger::Ledger ledger = ledger::fold(read.events);
  print_warnings(read.warnings);
  print_warnings(ledger.warnings);
  ledger::LintReport report;
  lint_citations(ledger, citations, report);
  lint_verdicts(ledger, report);
  if (json) {
    print_json({{"ledger", store->location()},
                {"ok", report.errors.empty()},
                {"errors", report.errors},
                {"notes", report.notes},
                {"citations", report.citations},
                {"unmeasured", report.unmeasured},
                {"verdicts", report.verdicts}});
  } else {
    print_lint(report);
  }
  if (report.errors.empty()) return kExitDone;
  return failed(fmt::format("{} by lint", count_of(report.errors.size(), "error")));
}

void add_verify(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("verify", "check every line; exit code 1 on an error");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->footer("Example:\n  reckon ledger verify");
  command->callback([&cli, json] { cli.action = [&cli, json] { return verify(cli, *json); }; });
}

void add_merge(Cli& cli, CLI::App& group) {
  CLI::App* command =
      group.add_subcommand("merge", "add another ledger's events to this one: a union");
  auto from = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("ledger", *from, "the other ledger, which is only read")
      ->required()
      ->type_name("DIR");
  command->add_flag("--json", *json, "print JSON");
  command->footer("Example:\n  reckon ledger merge ../other-clone/ledger");
  command->callback(
      [&cli, from, json] { cli.action = [&cli, from, json] { return merge(cli, *from, *json); }; });
}

void add_lint(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand(
      "lint", "hold rules, recipes and comments against the entries that they cite");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  command
      ->add_option("path", *paths,
                   "files or folders (those of rules, recipes and src that are here)")
      ->type_name("PATH");
  command->add_flag("--json", *json, "print JSON");
  command->footer("Example:\n  reckon ledger lint rules src/kernels");
  command->callback([&cli, paths, json] {
    cli.action = [&cli, paths, json] { return lint(cli, *paths, *json); };
  });
}

}  // namespace

void add_ledger_upkeep(Cli& cli, CLI::App& group) {
  add_verify(cli, group);
  add_merge(cli, group);
  add_lint(cli, group);
}

}  // namespace reckon::cli
