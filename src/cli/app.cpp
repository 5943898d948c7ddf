#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <exception>
#include <vector>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/command.h"

namespace reckon::cli {
namespace {

// Where this program lies, so that a round's child process is the same binary.
std::string self_path(const char* argv0) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : std::string(argv0);
}

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("reckon {} ({}{}, {})", build.version, build.commit,
                     build.dirty ? ", modified" : "", build.compiler);
}

void print_error(const Error& error) {
  fmt::print(stderr, "reckon: {}\n", error.message);
}

// The words of every subcommand, for "did you mean".
std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error,
                       const std::string& first_word) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  std::string message = error.what();
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  const std::vector<std::string> names = subcommand_names(app);
  const bool known = std::find(names.begin(), names.end(), first_word) != names.end();
  const std::string near = known || first_word.rfind('-', 0) == 0 ? "" : nearest(first_word, names);
  if (!near.empty())
    message = fmt::format("unknown command '{}': did you mean '{}'?", first_word, near);
  fmt::print(stderr, "reckon: {} (see 'reckon{} --help')\n", message,
             known ? " " + first_word : "");
  return kExitUsage;
}

}  // namespace

ExitCode exit_code(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kFailed:
      return kExitFailed;
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kRefused:
      return kExitRefused;
  }
  return kExitFailed;
}

int run_cli(int argc, char** argv) {
  Cli cli;
  cli.self = self_path(argc > 0 ? argv[0] : "reckon");
  cli.app.set_version_flag("--version", version_text());
  cli.app.require_subcommand(1);
  cli.app.get_formatter()->column_width(32);
  cli.app.add_option("--ledger", cli.ledger,
                     "the ledger's folder (default: the nearest ledger/ upward, else the user's)");
  cli.app.fallthrough();
  add_run_command(cli);
  add_bench_command(cli);
  add_plan_command(cli);
  add_oracle_command(cli);
  add_queue_command(cli);
  add_ledger_command(cli);
  add_round_worker_command(cli);
  try {
    cli.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(cli.app, error, argc > 1 ? argv[1] : "");
  }
  try {
    const Result<ExitCode> result = cli.action();
    if (result.ok()) return *result;
    print_error(result.error());
    return exit_code(result.error());
  } catch (const std::bad_alloc&) {
    print_error(failed("out of memory"));
  } catch (const std::exception& error) {
    print_error(failed(fmt::format("internal error: {}", error.what())));
  }
  return kExitFailed;
}

}  // namespace reckon::cli
