#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <vector>

#include "base/build_info.h"
#include "base/program_path.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "ledger/open.h"

namespace reckon::cli {
namespace {

// What becomes part of an entry: without the password of the ledger's URL.
std::string typed_line(int argc, char** argv) {
  constexpr std::string_view kLedger = "--ledger";
  std::string line = "reckon";
  std::string_view before;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (before == kLedger) {
      word = ledger::shareable_location(word);
    } else if (word.starts_with(kLedger) && word[kLedger.size()] == '=') {
      const size_t value = kLedger.size() + 1;
      word = word.substr(0, value) + ledger::shareable_location(word.substr(value));
    }
    line += " " + shell_quoted(word);
    before = argv[i];
  }
  return line;
}

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("reckon {} ({}{}, {})", build.version, build.commit,
                     build.dirty ? ", modified" : "", build.compiler);
}

// Errors are exactly one line of text, whatever a file is called or a library says.
void print_error(const std::string& message) {
  std::fflush(stdout);
  const std::string line =
      fmt::format("{} {}\n", styled("reckon:", Style::kBad, stderr), one_line(message));
  // Not fmt::print, which throws where there is nothing to write to.
  std::fputs(line.c_str(), stderr);
}

// A standard stream that was closed by whoever started us must not become the next file that is
// opened: standard error then goes nowhere, and writing results to standard output still fails.
void fill_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != fd && opened != -1) close(opened);
  }
}

// The subcommand that was typed: "reckon ledger list".
const CLI::App& typed_command(const CLI::App& app, std::string& path) {
  path = app.get_name();
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
    path += " " + command->get_name();
  }
  return *command;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::string unknown(std::string_view what, const std::string& word,
                    const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return fmt::format("unknown {} '{}'{}", what, word,
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

// The library's words for an option that is given too often, in ours.
std::string plain_words(const std::string& message) {
  constexpr std::string_view kTooOften = "At Most 1 required but received ";
  const size_t at = message.find(kTooOften);
  if (at == std::string::npos) return message;
  return fmt::format("{}expected once, not {} times", message.substr(0, at),
                     message.substr(at + kTooOften.size()));
}

std::string parse_message(const CLI::App& app, const CLI::App& command,
                          const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return plain_words(error.what());
  const std::vector<std::string> commands = subcommand_names(command);
  // Options behind a mistyped command belong to the command that was meant.
  if (!commands.empty() && !extras.front().starts_with('-')) {
    return unknown("command", extras.front(), commands);
  }
  for (const std::string& word : extras) {
    if (word.size() > 1 && word.front() == '-') {
      return unknown("option", word.substr(0, word.find('=')), option_names(command));
    }
  }
  return fmt::format("unexpected argument '{}'", extras.front());
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  std::string path;
  const CLI::App& command = typed_command(app, path);
  print_error(fmt::format("{} (see '{} --help')", parse_message(app, command, error), path));
  return kExitUsage;
}

Result<int> parse_and_run(Cli& cli, int argc, char** argv) {
  try {
    cli.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(cli.app, error);
  }
  TRY_ASSIGN(const ExitCode code, cli.action());
  return static_cast<int>(code);
}

int report_output_error(int error) {
  // A reader that has seen enough (`| head`) is no error worth a word.
  if (error != EPIPE) {
    print_error(fmt::format("cannot write to standard output: {}", std::strerror(error)));
  }
  return kExitFailed;
}

// Results that do not reach their file (a full disk) are a failure, whatever else went well.
int flushed(int code) {
  errno = EIO;
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? code : report_output_error(errno);
}

}  // namespace

ExitCode exit_code(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kFailed:
      return kExitFailed;
    case ErrorKind::kUsage:
    case ErrorKind::kUnsupported:
      return kExitUsage;
    case ErrorKind::kRefused:
      return kExitRefused;
  }
  return kExitFailed;
}

int run_cli(int argc, char** argv) {
  fill_standard_streams();
  Cli cli;
  cli.self = program_path();  // a round's child process is the same binary
  if (cli.self.empty()) cli.self = argc > 0 ? argv[0] : "reckon";
  cli.typed = typed_line(argc, argv);
  cli.app.set_version_flag("--version", version_text());
  cli.app.require_subcommand(1);
  cli.app.get_formatter()->column_width(32);
  cli.app
      .add_option("--ledger", cli.ledger,
                  "the ledger's folder (the nearest ledger/ upward, else the user's)")
      ->type_name("DIR")
      ->check([](const std::string& text) {
        return text.empty() ? "a folder is needed (an unset variable?)" : "";
      });
  cli.app.fallthrough();
  add_run_command(cli);
  add_chat_command(cli);
  add_bench_command(cli);
  add_plan_command(cli);
  add_synth_command(cli);
  add_oracle_command(cli);
  add_tune_command(cli);
  add_ab_command(cli);
  add_queue_command(cli);
  add_ledger_command(cli);
  add_round_worker_command(cli);
  // After the commands, which would inherit it.
  cli.app.footer(
      "Examples:\n"
      "  reckon run -m tiny -p 'It was a dark night, and'\n"
      "  reckon chat -m smollm2\n"
      "  reckon queue run queues/first.yaml\n"
      "  reckon ab --base './bench --old' --arm './bench --new'\n"
      "'reckon COMMAND --help' says more; docs/cli.md has it all on one page.");
  try {
    const Result<int> code = parse_and_run(cli, argc, argv);
    if (code.ok()) return flushed(*code);
    print_error(code.error().message);
    return flushed(exit_code(code.error()));
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return report_output_error(error.code().value());
    print_error(error.what());
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
  }
  return kExitFailed;
}

}  // namespace reckon::cli
