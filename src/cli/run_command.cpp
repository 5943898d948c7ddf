// `reckon run`: a prompt in, generated text out as it comes.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/audit.h"
#include "cli/chat_options.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/speculation.h"
#include "engine/generate.h"
#include "engine/plan_notes.h"
#include "engine/speculate.h"
#include "formats/chat_template.h"
#include "kernels/trace.h"

namespace reckon::cli {
namespace {

using engine::Flow;
using engine::Generation;
using engine::LoadedModel;
using engine::Session;

constexpr int kTimedPasses = 3;       // of one token, where a run that drafts had none
constexpr int64_t kContextStep = 64;  // a default context is a multiple of it

struct RunOptions {
  EngineOptions engine;
  std::optional<std::string> prompt;
  std::string file;
  ChatOptions chat;
  bool raw = false;
  int64_t max_tokens = 128;
  SamplingOptions sampling;
  std::optional<std::string> trace;
  std::optional<std::string> load_state;
  std::optional<std::string> save_state;
  bool audit_buffers = false;
  bool json = false;
  bool quiet = false;
};

Result<std::string> prompt_text(const RunOptions& options) {
  if (options.prompt) return *options.prompt;
  if (options.file.empty()) return usage_error("nothing to run: give a prompt by -p or -f");
  return read_text(options.file);
}

std::vector<int32_t> with_prefix(const Tokenizer& tokenizer, std::vector<int32_t> tokens) {
  tokens.insert(tokens.begin(), tokenizer.prefix().begin(), tokenizer.prefix().end());
  return tokens;
}

// Nothing is put around the text.
bool is_raw(const RunOptions& options) {
  return options.raw || options.load_state;
}

// The template of a chat turn: where one is named or the checkpoint has one, and not with --raw.
Result<std::optional<ChatTemplate>> chat_template(const LoadedModel& model,
                                                  const RunOptions& options) {
  if (is_raw(options)) return std::optional<ChatTemplate>();
  TRY_ASSIGN(const std::optional<std::string> own, chat_template_text(model.checkpoint()));
  if (!own && options.chat.chat_template.empty()) {
    if (!options.chat.system && options.chat.thinking.empty()) return std::optional<ChatTemplate>();
    return usage_error(fmt::format(
        "{} needs a chat template, and this checkpoint has none; --chat-template NAME chooses one",
        options.chat.system ? "--system" : "--thinking"));
  }
  auto chosen = choose_template(model.checkpoint(), options.chat);
  if (chosen.ok()) return std::optional(std::move(chosen).value());
  Error error = chosen.error();
  if (error.kind == ErrorKind::kFailed) error.message += ", --raw runs the text as it is";
  return error;
}

// Behind a saved state: its pending token, and the text, where there is one, as it is.
Result<std::vector<int32_t>> tokens_behind(const engine::StateContents& state,
                                           const Tokenizer& tokenizer, const RunOptions& options) {
  std::vector<int32_t> tokens;
  if (state.pending) tokens.push_back(*state.pending);
  if (options.prompt || !options.file.empty()) {
    TRY_ASSIGN(const std::string text, prompt_text(options));
    const std::vector<int32_t> more = tokenizer.encode(text, Special::kParse);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  if (!tokens.empty()) return tokens;
  return usage_error(
      "nothing to run: the saved state ends where its last token was run; go on by -p or -f");
}

// A chat turn where there is a template, else the text as it is.
Result<std::vector<int32_t>> prompt_tokens(const std::optional<ChatTemplate>& chat,
                                           const Tokenizer& tokenizer, const RunOptions& options) {
  TRY_ASSIGN(const std::string text, prompt_text(options));
  if (text.empty()) return usage_error("the prompt is empty");
  if (!chat) return with_prefix(tokenizer, tokenizer.encode(text, Special::kParse));
  std::vector<ChatMessage> messages;
  if (options.chat.system) messages.push_back({"system", *options.chat.system});
  messages.push_back({"user", text});
  return chat->encode(tokenizer, messages, GenerationPrompt::kAdd);
}

std::vector<int32_t> stop_tokens(const std::optional<ChatTemplate>& chat,
                                 const Tokenizer& tokenizer) {
  std::vector<int32_t> stops = engine::default_stop_tokens(tokenizer);
  if (!chat) return stops;
  const std::vector<int32_t> ends = chat->end_tokens(tokenizer);
  stops.insert(stops.end(), ends.begin(), ends.end());
  return stops;
}

// `prompt` is what is run, with what a saved state holds.
Result<int64_t> choose_context(const LoadedModel& model, int64_t prompt,
                               const RunOptions& options) {
  const int64_t limit = model.model().info().context_limit;
  if (options.engine.context != 0) {
    if (prompt > options.engine.context) {
      return usage_error(fmt::format("the prompt is {}, more than the {} of --ctx",
                                     counted(prompt, "token"), options.engine.context));
    }
    return options.engine.context;
  }
  if (prompt > limit) {
    return usage_error(fmt::format("the prompt is {}; this model takes at most {}",
                                   counted(prompt, "token"), limit));
  }
  const int64_t needed = prompt + options.max_tokens;
  return std::min(limit, (needed + kContextStep - 1) / kContextStep * kContextStep);
}

// Throws where the text does not get out, as fmt does.
void print_piece(std::string_view text) {
  fmt::print("{}", text);
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

double milliseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// Tokens a second; 0 where nothing was timed.
double rate(int64_t tokens, int64_t ns) {
  return ns > 0 ? static_cast<double>(tokens) * 1e9 / static_cast<double>(ns) : 0;
}

std::vector<kernels::DispatchRow> dispatch_rows(const std::vector<kernels::TraceCount>& counted) {
  std::vector<kernels::DispatchRow> rows;
  for (const kernels::TraceCount& count : counted) rows.push_back(count.row);
  return rows;
}

nlohmann::json trace_json(Session& session) {
  const std::vector<kernels::TraceCount> counted = session.trace().rows();
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [row, count, launches, resources] : counted) {
    rows.push_back({{"phase", row.phase},
                    {"op", row.op},
                    {"shape", row.shape},
                    {"variant", row.variant},
                    {"params", row.params},
                    {"source_hash", row.source_hash},
                    {"calls", count}});
    if (!launches.empty()) rows.back()["launches"] = launches;
  }
  return {{"fingerprint", kernels::fingerprint(dispatch_rows(counted))}, {"rows", rows}};
}

nlohmann::json result_json(const Generation& generation, const std::string& text, Session& session,
                           const std::vector<std::string>& notes, const RunOptions& options) {
  nlohmann::json json = {
      {"text", text},
      {"tokens", generation.tokens},
      {"stop", stop_reason_name(generation.stop)},
      {"prompt_tokens", generation.prompt_tokens},
      {"prefill_ms", milliseconds(generation.prefill_ns)},
      {"prefill_tok_per_s", rate(generation.prompt_tokens, generation.prefill_ns)},
      {"decode_ms", milliseconds(generation.decode_ns)},
      {"decode_tok_per_s", rate(generation.decode_tokens, generation.decode_ns)},
      {"peak_bytes", session.arenas().peak_bytes()},
      {"context", session.capacity()},
      {"chunk", session.plan().shape.chunk},
      {"threads", session.planner().threads()},
      {"switches", session.planner().switches().changed()},
      {"notes", notes},
      {"fingerprint", kernels::fingerprint(dispatch_rows(session.trace().rows()))}};
  json.update(sampling_json(options.sampling));
  if (generation.speculation) json["speculation"] = speculation_json(*generation.speculation);
  return json;
}

std::string statistics(const Generation& generation, const Session& session) {
  std::string decode = fmt::format("{} generated", generation.tokens.size());
  if (generation.decode_tokens > 0) {
    decode += fmt::format(" at {:.1f} tok/s", rate(generation.decode_tokens, generation.decode_ns));
  }
  std::string text = fmt::format("{} at {:.1f} tok/s, {}, stop: {}, peak memory {}\n",
                                 counted(generation.prompt_tokens, "prompt token"),
                                 rate(generation.prompt_tokens, generation.prefill_ns), decode,
                                 stop_reason_name(generation.stop),
                                 format_bytes_short(session.arenas().peak_bytes()));
  if (generation.speculation) text += speculation_line(*generation.speculation) + "\n";
  return text;
}

// A file in the place of the model would be the end of that.
Status check_is_no_model(const char* option, const std::string& path,
                         const Checkpoint& checkpoint) {
  for (const std::string& file : checkpoint.files()) {
    std::error_code ignored;
    if (!std::filesystem::equivalent(path, file, ignored)) continue;
    return usage_error(fmt::format("{} {}: is a file of the model", option, path));
  }
  return {};
}

Status check_outputs(const RunOptions& options, const Session& session,
                     const Checkpoint& checkpoint) {
  if (options.save_state) {
    TRY(session.check_can_save());
    TRY(check_is_no_model("--save-state", *options.save_state, checkpoint));
    TRY(engine::check_state_path(*options.save_state));
  }
  if (!options.trace) return {};
  TRY(check_is_no_model("--trace", *options.trace, checkpoint));
  return check_writable(*options.trace);
}

// The token that was picked last is pending where the generation ended before its pass.
Status save_state(Session& session, const Generation& generation, int64_t first_position,
                  const RunOptions& options) {
  const int64_t all =
      first_position + generation.prompt_tokens + static_cast<int64_t>(generation.tokens.size());
  std::optional<int32_t> pending;
  if (session.position() < all) pending = generation.tokens.back();
  TRY(session.save_state(*options.save_state, pending));
  if (!options.quiet && !options.json) {
    print_notes(
        std::vector{fmt::format("saved the state behind {} in {}",
                                counted(session.position(), "token"), *options.save_state)});
  }
  return {};
}

std::vector<std::string> notes_of(const LoadedModel& model, bool has_template,
                                  const kernels::SwitchSet& switches, const RunOptions& options) {
  std::vector<std::string> notes = model.notes();
  if (!has_template && !is_raw(options)) {
    notes.emplace_back("this checkpoint has no chat template: the text is continued as with --raw");
  }
  if (const std::string note = sampling_note(options.sampling); !note.empty()) {
    notes.push_back(note);
  }
  if (const std::string note = speculation_note(switches); !note.empty()) notes.push_back(note);
  return notes;
}

engine::GenerateOptions generate_options(const RunOptions& options,
                                         const std::optional<ChatTemplate>& chat,
                                         const Tokenizer& tokenizer,
                                         std::span<const int32_t> context) {
  engine::GenerateOptions generate;
  generate.max_tokens = options.max_tokens;
  generate.sampler = options.sampling.sampler;
  generate.stop_texts = options.sampling.stop_texts;
  generate.stop_tokens = stop_tokens(chat, tokenizer);
  generate.context = context;
  return generate;
}

Result<ExitCode> run(const RunOptions& options) {
  TRY_ASSIGN(const kernels::SwitchSet switches, parse_switches(options.engine));
  TRY_ASSIGN(const auto model, open_model(options.engine));
  TRY_ASSIGN(const Tokenizer* tokenizer, model->tokenizer());
  TRY_ASSIGN(const std::optional<ChatTemplate> chat, chat_template(*model, options));
  std::optional<engine::StateFile> state;
  if (options.load_state) {
    TRY_ASSIGN(state, engine::StateFile::open(*options.load_state));
  }
  TRY_ASSIGN(const std::vector<int32_t> prompt,
             state ? tokens_behind(state->contents(), *tokenizer, options)
                   : prompt_tokens(chat, *tokenizer, options));
  if (prompt.empty()) return usage_error("the prompt is empty");
  std::vector<int32_t> before;  // what the state holds
  if (state) before = state->contents().tokens;
  TRY_ASSIGN(const int64_t context,
             choose_context(*model, static_cast<int64_t>(before.size() + prompt.size()), options));
  TRY_ASSIGN(engine::SessionOptions session_opts, session_options(options.engine, context));
  kernels::BufferAudit audit;
  if (options.audit_buffers) session_opts.audit = &audit;
  TRY_ASSIGN(const auto session, Session::create(*model, session_opts));
  if (state) TRY(session->load_state(*state));
  state.reset();

  TRY_ASSIGN(engine::Sampler sampler, engine::Sampler::create(options.sampling.sampler));
  sampler.saw(before);
  std::vector<std::string> notes = notes_of(*model, chat.has_value(), switches, options);
  for (std::string& note : engine::tile_rule_notes(session->plan().calls)) {
    notes.push_back(std::move(note));
  }
  TRY(check_outputs(options, *session, model->checkpoint()));
  if (!options.quiet && !options.json) print_notes(notes);
  std::string text;
  const auto sink = [&](std::string_view piece) {
    text += piece;
    if (!options.json) print_piece(piece);
    return Flow::kContinue;
  };
  TRY_ASSIGN(Generation generation,
             engine::generate(*session, prompt, generate_options(options, chat, *tokenizer, before),
                              sampler, tokenizer, sink));
  const int64_t position = session->position();
  if (options.save_state) {
    TRY(save_state(*session, generation, static_cast<int64_t>(before.size()), options));
  }
  if (generation.speculation) {
    TRY(engine::time_passes(*session, 1, kTimedPasses, *generation.speculation));
  }
  const engine::AuditReport audited = engine::audit_report(audit);
  if (options.json) {
    nlohmann::json result = result_json(generation, text, *session, notes, options);
    if (options.audit_buffers) result["audit"] = audit_json(audited);
    if (options.load_state) result["loaded_tokens"] = before.size();
    if (options.save_state) result["saved_tokens"] = position;
    print_json(result);
  } else if (!text.empty() && text.back() != '\n') {
    fmt::print("\n");
  }
  if (options.trace) TRY(write_text(*options.trace, json_text(trace_json(*session))));
  if (!options.quiet && !options.json) {
    std::fflush(stdout);
    fmt::print(stderr, "{}", statistics(generation, *session));
  }
  return options.audit_buffers ? conclude_audit(audited) : kExitDone;
}

}  // namespace

void add_run_command(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand("run", "generate text");
  auto options = std::make_shared<RunOptions>();
  add_engine_options(*command, options->engine);
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "the prompt");
  command->add_option("-f,--file", options->file, "read the prompt from a file; - is stdin")
      ->type_name("FILE")
      ->excludes(prompt);
  CLI::Option* raw =
      command->add_flag("--raw", options->raw, "no chat template: continue the text as it is");
  CLI::Option* load =
      command
          ->add_option("--load-state", options->load_state,
                       "go on from a saved state; a prompt, if any, follows as it is")
          ->type_name("FILE");
  for (CLI::Option* chat : add_chat_options(*command, options->chat)) {
    raw->excludes(chat);
    load->excludes(chat);
  }
  command->add_option("-n,--tokens", options->max_tokens, "generate at most N tokens (128)")
      ->type_name("N")
      ->check(whole_number(0, kMostTokens));
  add_sampling_options(*command, options->sampling);
  command
      ->add_option("--save-state", options->save_state,
                   "keep what the model needs to go on from the end, for --load-state")
      ->type_name("FILE");
  command->add_option("--trace", options->trace, "write which kernels ran, as JSON")
      ->type_name("FILE");
  add_audit_option(*command, options->audit_buffers);
  command->add_flag("--json", options->json, "print one JSON document instead of the text");
  command->add_flag("-q,--quiet", options->quiet, "no statistics on stderr");
  command->footer(
      "Examples:\n"
      "  reckon run -m tiny -p 'It was a dark night, and' -n 64\n"
      "  reckon run -m model.gguf -f story.txt --raw --temperature 0.8 --top-p 0.9 --seed 7\n"
      "  reckon run -m tiny -p Hi --set cpu.isa=scalar --json\n"
      "  reckon run -m tiny -f book.txt -n 0 --save-state book.state");
  command->callback([&cli, options] { cli.action = [options] { return run(*options); }; });
}

}  // namespace reckon::cli
