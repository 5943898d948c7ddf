#include "cli/ledger_exchange.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/ledger_access.h"
#include "cli/ledger_filter.h"
#include "cli/output.h"
#include "ledger/exchange.h"
#include "ledger/reported.h"
#include "ledger/writer.h"

namespace reckon::cli {
namespace {

using ledger::Event;
using ledger::Series;

struct ImportOptions {
  std::string file;
  std::string format;
  std::string switch_arms;  // key=base,arm
  std::string base;         // names of series
  std::string arm;
  ledger::ImportRequest request;
  bool json = false;
};

struct ExportOptions {
  std::string format;
  std::vector<std::string> ids;
  LedgerFilter filter;
  std::string output;
};

Status parse_switch(const std::string& text, ledger::ImportRequest& request) {
  const size_t equals = text.find('=');
  const size_t comma = text.find(',', equals);
  if (equals == 0 || equals == std::string::npos || comma == std::string::npos) {
    return usage_error(fmt::format("--switch {}: expected KEY=BASE,ARM", text));
  }
  request.switch_key = text.substr(0, equals);
  request.base_value = text.substr(equals + 1, comma - equals - 1);
  request.arm_value = text.substr(comma + 1);
  return {};
}

Result<Series> series_called(const std::vector<Series>& all, const std::string& name) {
  std::vector<std::string> names;
  for (const Series& series : all) {
    if (series.name == name) return series;
    names.push_back(series.name);
  }
  return usage_error(
      fmt::format("no series is called '{}'; the file has {}", name, join(names, ", ")));
}

bool is_yaml(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

Result<std::vector<Event>> events_of(const ImportOptions& options, const std::string& text,
                                     const ledger::Signature& signature) {
  if (is_yaml(options.file)) return ledger::read_reported(text, options.file, signature);
  const ledger::FileFormat* format = nullptr;
  if (options.format.empty()) {
    TRY_ASSIGN(format, ledger::recognise_format(text, options.file));
  } else {
    TRY_ASSIGN(format, ledger::file_format(options.format));
  }
  TRY_ASSIGN(const std::vector<Series> all, format->read(text, options.file));
  ledger::ImportRequest request = options.request;
  if (request.source.empty()) {
    request.source = fmt::format("{} ({})", options.file, format->name);
  }
  std::vector<Event> events;
  if (options.switch_arms.empty()) {
    for (const Series& series : all) {
      TRY_ASSIGN(Event event, ledger::import_series(series, request, signature));
      events.push_back(std::move(event));
    }
    return events;
  }
  TRY(parse_switch(options.switch_arms, request));
  TRY_ASSIGN(const Series base, series_called(all, options.base));
  TRY_ASSIGN(const Series arm, series_called(all, options.arm));
  TRY_ASSIGN(Event event, ledger::import_arms(base, arm, request, signature));
  return std::vector{std::move(event)};
}

Result<ExitCode> import_file(const Cli& cli, const ImportOptions& options) {
  if (options.switch_arms.empty() != (options.base.empty() && options.arm.empty())) {
    return usage_error("--switch, --base and --arm go together");
  }
  TRY_ASSIGN(const std::string text, read_text(options.file));
  TRY_ASSIGN(const std::vector<Event> events,
             events_of(options, text, {ledger::default_writer(), utc_timestamp()}));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const ledger::AppendReport report, store->append(events));
  print_warnings(report.warnings);
  std::vector<std::string> entries;
  for (const Event& event : events) {
    if (creates_entry(event.type)) entries.push_back(event.entry);
  }
  if (options.json) {
    print_json({{"ledger", store->location()}, {"entries", entries}});
  } else {
    for (const std::string& entry : entries) fmt::print("{}: imported as reported\n", entry);
  }
  return kExitDone;
}

Result<std::vector<ledger::Entry>> entries_of(ledger::Catalog& catalog,
                                              const ExportOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (ids.empty()) {
    TRY(check_filter({"", "", options.filter.verdict, ""}, {}));
    TRY_ASSIGN(std::vector<ledger::Summary> all, catalog.list());
    for (const ledger::Summary& entry : matching(std::move(all), options.filter)) {
      ids.push_back(entry.id);
    }
  }
  std::vector<ledger::Entry> entries;
  for (const std::string& id : ids) {
    TRY_ASSIGN(ledger::Entry entry, catalog.entry(id));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::string> exported(const std::vector<ledger::Entry>& entries, const std::string& format) {
  if (format == "csv") return ledger::csv_of(entries);
  if (format == "markdown") return ledger::markdown_of(entries);
  TRY_ASSIGN(const ledger::FileFormat* file_format, ledger::file_format(format));
  std::vector<Series> all;
  for (const ledger::Entry& entry : entries) {
    for (Series& series : ledger::series_of(entry)) all.push_back(std::move(series));
  }
  if (all.empty()) return failed("no samples: none of these entries was measured here");
  return file_format->write(all);
}

Result<ExitCode> export_entries(const Cli& cli, const ExportOptions& options) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(const std::vector<ledger::Entry> entries, entries_of(*catalog, options));
  TRY_ASSIGN(const std::string text, exported(entries, options.format));
  if (options.output.empty()) {
    fmt::print("{}", text);
  } else {
    TRY(write_text(options.output, text));
  }
  return kExitDone;
}

void add_import(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand(
      "import", "add figures of another tool's file, as reported, not measured here");
  auto options = std::make_shared<ImportOptions>();
  command
      ->add_option("file", options->file,
                   "Go benchmark text, JSON of Google Benchmark, hyperfine or llama-bench, or a "
                   "YAML file of reported entries")
      ->required()
      ->type_name("FILE");
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return command->add_option(name, value, help)->type_name(type);
  };
  add("--format", options->format, "go, gbench, hyperfine or llama-bench (by its content)",
      "FORMAT");
  add("--switch", options->switch_arms, "what --base and --arm differ in", "KEY=BASE,ARM");
  add("--base", options->base, "the series of the base", "NAME");
  add("--arm", options->arm, "the series of the arm", "NAME");
  add("--source", options->request.source, "where the figures come from (the file)", "TEXT");
  add("--idea", options->request.idea, "what was tried, in a sentence", "TEXT");
  add("--model", options->request.model_name, "the model's name", "TEXT");
  add("--device", options->request.device_name, "the device's name", "TEXT");
  command->add_flag("--json", options->json, "print JSON");
  command->footer("Example:\n  reckon ledger import llama-bench.jsonl --device 'Some GPU'");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return import_file(cli, *options); }; });
}

void add_export(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("export", "write entries for other tools");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("id", options->ids, "entries (all that the filters leave)")->type_name("ID");
  command
      ->add_option("--format", options->format,
                   "csv or markdown, or samples as go, gbench, hyperfine or llama-bench")
      ->required()
      ->type_name("FORMAT");
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    command->add_option(name, value, help)->type_name(type);
  };
  add("--switch", options->filter.switch_key, "of this switch", "KEY");
  add("--model", options->filter.model, "on models whose name or family has TEXT in it", "TEXT");
  add("--verdict", options->filter.verdict, "WON, LOST, …, aa or open", "VERDICT");
  add("--device", options->filter.device, "on devices whose name or key has TEXT in it", "TEXT");
  add("-o", options->output, "the file (standard output)", "FILE");
  command->footer(
      "Examples:\n"
      "  reckon ledger export --format markdown --verdict WON\n"
      "  reckon ledger export --format gbench -o out.json rk-njf");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return export_entries(cli, *options); }; });
}

}  // namespace

void add_ledger_exchange(Cli& cli, CLI::App& group) {
  add_import(cli, group);
  add_export(cli, group);
}

}  // namespace reckon::cli
