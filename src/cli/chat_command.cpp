// `reckon chat`: a conversation, a line of the user a turn. On a terminal it is interactive; from a
// pipe every line is a turn, and only the answers reach stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/chat_options.h"
#include "cli/command.h"
#include "cli/line_input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engine/conversation.h"

namespace reckon::cli {
namespace {

using engine::Conversation;
using engine::Flow;
using engine::Generation;
using engine::StopReason;
using engine::Turn;
using Event = LineInput::Event;

constexpr int64_t kDefaultContext = 4096;

constexpr std::string_view kHelp =
    "  /system TEXT  start over with another system message (none without TEXT)\n"
    "  /reset        start over\n"
    "  /regen        answer the last question again\n"
    "  /exit         end (so does Ctrl-D)\n"
    "  //TEXT        a message that begins with a slash\n"
    "Ctrl-C stops an answer or drops the line; another one before the next line ends.\n";

struct ChatCommandOptions {
  EngineOptions engine;
  ChatOptions chat;
  SamplingOptions sampling;
  int64_t max_tokens = kMostTokens;
  bool json = false;
  bool quiet = false;
};

// A terminal drops what a line has beyond this (N_TTY of Linux), and nobody is told.
constexpr size_t kTerminalLine = 4095;

double rate(const Generation& generation) {
  if (generation.decode_ns <= 0) return 0;
  return static_cast<double>(generation.decode_tokens) * 1e9 /
         static_cast<double>(generation.decode_ns);
}

class Chat {
 public:
  Chat(Conversation conversation, const engine::Session& session, const ChatCommandOptions& options)
      : conversation_(std::move(conversation)),
        session_(session),
        options_(options),
        interactive_(isatty(STDIN_FILENO) == 1) {}

  Result<ExitCode> run() {
    // From a pipe Ctrl-C ends the program as it ends any: nothing is half answered unnoticed.
    std::optional<Interrupts> interrupts;
    if (interactive_) interrupts.emplace();
    if (interactive_) note("/help lists the commands, Ctrl-D ends");
    LineInput input(STDIN_FILENO, kMaximumTextBytes);
    std::string line;
    while (!ended_) {
      if (interactive_) fmt::print(stderr, "{}", styled("> ", Style::kBold, stderr));
      TRY_ASSIGN(const Event event, input.next(line));
      if (event == Event::kEnd) break;
      if (event == Event::kInterrupted) {
        if (!goes_on()) return static_cast<ExitCode>(kExitSignal + SIGINT);
        continue;
      }
      interrupted_ = false;
      if (const Status status = take(event, line); !status.ok()) {
        // A person can do something about it; a script must not get fewer answers than lines.
        if (!interactive_) return status.error();
        note(status.error().message);
      }
    }
    if (interactive_ && !ended_) fmt::print(stderr, "\n");
    return kExitDone;
  }

 private:
  static void note(const std::string& text) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", styled(one_line(text), Style::kDim, stderr));
  }

  // Ctrl-C while a line was typed. Whether any was is not known: the terminal has dropped it.
  bool goes_on() {
    Interrupts::take();
    fmt::print(stderr, "\n");
    if (interrupted_) return false;
    interrupted_ = true;
    note("Ctrl-C again, or Ctrl-D, ends");
    return true;
  }

  Status take(Event event, std::string_view line) {
    if (event == Event::kTooLong) {
      return usage_error(
          fmt::format("a line of more than {} of text", format_bytes_short(kMaximumTextBytes)));
    }
    if (interactive_ && line.size() >= kTerminalLine) {
      return usage_error(
          fmt::format("a terminal cuts a line after {} bytes, so this one may lack its end: send "
                      "it through a pipe, or with 'reckon run -f FILE'",
                      kTerminalLine));
    }
    return obey(line);
  }

  Status obey(std::string_view line) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
    if (line.starts_with("//")) return ask(line.substr(1));
    if (!line.starts_with('/')) return ask(line);
    const size_t space = std::min(line.find(' '), line.size());
    const std::string_view command = line.substr(0, space);
    const std::string_view rest = line.substr(std::min(space + 1, line.size()));
    if (command == "/system") {
      conversation_.set_system(rest.empty() ? std::nullopt : std::optional(std::string(rest)));
      return {};
    }
    if (!rest.empty()) {
      return usage_error(
          fmt::format("{} takes nothing behind it (// begins a message that starts "
                      "with a slash)",
                      command));
    }
    return obey_bare(command);
  }

  Status obey_bare(std::string_view command) {
    if (command == "/help") {
      fmt::print(stderr, "{}", kHelp);
    } else if (command == "/reset") {
      conversation_.reset();
    } else if (command == "/exit") {
      ended_ = true;
    } else if (command == "/regen") {
      return finish(conversation_.ask_again(sink()));
    } else {
      return usage_error(
          fmt::format("unknown command '{}'; /help lists them, and // begins a "
                      "message that starts with a slash",
                      command));
    }
    return {};
  }

  Status ask(std::string_view text) { return finish(conversation_.ask(text, sink())); }

  [[nodiscard]] engine::TextSink sink() const {
    return [this](std::string_view piece) {
      if (!options_.json) {
        fmt::print("{}", piece);
        if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
      }
      return Interrupts::pending() ? Flow::kStop : Flow::kContinue;
    };
  }

  Status finish(const Result<Turn>& turn) {
    interrupted_ = Interrupts::take();
    if (!turn.ok()) return turn.error();
    if (options_.json) {
      fmt::print("{}\n", turn_json(*turn));
    } else {
      fmt::print("\n");
    }
    std::fflush(stdout);
    if (turn->generation.stop == StopReason::kContextFull) {
      note(fmt::format("the context of {} is full: /reset starts over, --ctx gives more",
                       counted(session_.capacity(), "token")));
    } else if (interactive_ && !options_.quiet && !options_.json) {
      note(statistics(*turn));
    }
    return {};
  }

  [[nodiscard]] std::string statistics(const Turn& turn) const {
    const Generation& generation = turn.generation;
    std::string text = counted(static_cast<int64_t>(generation.tokens.size()), "token");
    if (generation.decode_tokens > 0) text += fmt::format(" at {:.1f} tok/s", rate(generation));
    return fmt::format("[{}, {}; context {} of {}]", text, stop_reason_name(generation.stop),
                       session_.position(), session_.capacity());
  }

  [[nodiscard]] std::string turn_json(const Turn& turn) const {
    const Generation& generation = turn.generation;
    const auto& messages = conversation_.messages();
    const nlohmann::json json = {{"user", messages[messages.size() - 2].content},
                                 {"text", turn.text},
                                 {"tokens", generation.tokens},
                                 {"stop", stop_reason_name(generation.stop)},
                                 {"prompt_tokens", turn.cached_tokens + generation.prompt_tokens},
                                 {"cached_tokens", turn.cached_tokens},
                                 {"prefill_ms", static_cast<double>(generation.prefill_ns) / 1e6},
                                 {"decode_ms", static_cast<double>(generation.decode_ns) / 1e6},
                                 {"decode_tok_per_s", rate(generation)},
                                 {"position", session_.position()},
                                 {"context", session_.capacity()}};
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  Conversation conversation_;
  const engine::Session& session_;
  const ChatCommandOptions& options_;
  bool interactive_;
  bool interrupted_ = false;  // by Ctrl-C, and no line was read since
  bool ended_ = false;
};

Result<engine::ConversationOptions> conversation_options(const ChatCommandOptions& options,
                                                         const ChatTemplate& chat,
                                                         const Tokenizer& tokenizer) {
  engine::ConversationOptions conversation;
  conversation.system = options.chat.system;
  engine::GenerateOptions& generate = conversation.generate;
  generate.max_tokens = options.max_tokens;
  generate.sampler = options.sampling.sampler;
  generate.stop_texts = options.sampling.stop_texts;
  generate.stop_tokens = engine::default_stop_tokens(tokenizer);
  const std::vector<int32_t> ends = chat.end_tokens(tokenizer);
  generate.stop_tokens.insert(generate.stop_tokens.end(), ends.begin(), ends.end());
  return conversation;
}

Result<ExitCode> chat(const ChatCommandOptions& options) {
  TRY_ASSIGN(const auto model, open_model(options.engine));
  TRY_ASSIGN(const Tokenizer* tokenizer, model->tokenizer());
  TRY_ASSIGN(ChatTemplate chat_template, choose_template(model->checkpoint(), options.chat));
  TRY_ASSIGN(engine::ConversationOptions conversation_opts,
             conversation_options(options, chat_template, *tokenizer));
  const int64_t limit = model->model().info().context_limit;
  const int64_t context =
      options.engine.context != 0 ? options.engine.context : std::min(limit, kDefaultContext);
  TRY_ASSIGN(const engine::SessionOptions session_opts, session_options(options.engine, context));
  TRY_ASSIGN(const auto session, engine::Session::create(*model, session_opts));
  if (!options.quiet && !options.json) print_notes(model->model().info().notes);
  TRY_ASSIGN(Conversation conversation,
             Conversation::create(*session, *tokenizer, std::move(chat_template),
                                  std::move(conversation_opts)));
  return Chat(std::move(conversation), *session, options).run();
}

}  // namespace

void add_chat_command(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand("chat", "talk with a model, line by line");
  auto options = std::make_shared<ChatCommandOptions>();
  add_engine_options(*command, options->engine);
  add_chat_options(*command, options->chat);
  command
      ->add_option("-n,--tokens", options->max_tokens,
                   "at most N tokens an answer (what the context holds)")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  add_sampling_options(*command, options->sampling);
  command->add_flag("--json", options->json, "a JSON object a turn instead of the text");
  command->add_flag("-q,--quiet", options->quiet, "no statistics on stderr");
  command->footer(
      "Examples:\n"
      "  reckon chat -m smollm2\n"
      "  reckon chat -m model.gguf --system 'Be brief.' --temperature 0.7 --top-p 0.9\n"
      "  printf 'Hi\\nWhat did I say?\\n' | reckon chat -m smollm2 --json");
  command->callback([&cli, options] { cli.action = [options] { return chat(*options); }; });
}

}  // namespace reckon::cli
