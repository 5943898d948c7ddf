// `reckon bench`: prefill and decode speed, as users of llama-bench expect it, and this machine's
// bounds.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/build_info.h"
#include "base/bytes.h"
#include "base/text.h"
#include "cli/audit.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/roofline.h"
#include "cli/speculation.h"
#include "cli/table.h"
#include "engine/cost.h"
#include "engine/generate.h"
#include "engine/plan_notes.h"
#include "engine/random_tokens.h"
#include "engine/session.h"
#include "engine/speculate.h"
#include "measure/noise.h"

namespace reckon::cli {
namespace {

struct BenchOptions {
  EngineOptions engine;
  int64_t prompt = 512;
  int64_t generate = 128;
  int64_t depth = 0;  // tokens of context before a test's first
  int repetitions = 5;
  std::string output = "table";
  bool audit_buffers = false;
  bool json = false;
  bool roofline = false;
  std::string buffer;  // of the roofline, as typed
};

using Bounds = std::vector<kernels::Bound>;

// One line of the result: `tokens` in one phase, timed `samples_ns.size()` times.
struct BenchTest {
  std::string name;  // "pp512", "tg128", "tg128 @ d1024"
  kernels::Phase phase = kernels::Phase::kPrefill;
  int64_t tokens = 0;
  int64_t depth = 0;           // as asked for
  int64_t first_position = 0;  // of the first token that is timed
  std::vector<int64_t> samples_ns;
  std::vector<double> rates;  // tokens a second, of each sample
  double mean_rate = 0;
  double deviation = 0;  // sample standard deviation; 0 for a single sample, as llama-bench prints
  std::optional<engine::SpeculationStats> speculation;  // of all samples, where it drafted
  std::optional<Shares> shares;  // of the machine's bounds, where they were measured
};

Status add_statistics(BenchTest& test) {
  for (const int64_t ns : test.samples_ns) {
    test.rates.push_back(static_cast<double>(test.tokens) * 1e9 / static_cast<double>(ns));
  }
  test.mean_rate = measure::mean(test.rates);
  TRY_ASSIGN(test.deviation, measure::standard_deviation(test.rates));
  return {};
}

template <typename Work>
Result<int64_t> timed_ns(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  TRY(work());
  const auto elapsed = std::chrono::steady_clock::now() - start;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
}

// The session holds the tokens before.
Result<int64_t> time_prefill(engine::Session& session, const BenchTest& test,
                             std::span<const int32_t> tokens) {
  TRY(session.truncate(test.depth));
  return timed_ns([&]() -> Status {
    TRY(session.prefill(tokens));
    return {};
  });
}

// Generates greedily behind one more token: each pass with the picking of its token.
Result<engine::Generation> time_decode(engine::Session& session, const BenchTest& test,
                                       int32_t first) {
  TRY(session.truncate(test.depth));
  engine::GenerateOptions options;
  options.max_tokens = test.tokens + 1;  // the first of them comes from the prompt's own pass
  return engine::generate(session, {&first, 1}, options, nullptr, {});
}

void add_sample(BenchTest& test, const engine::Generation& made) {
  test.samples_ns.push_back(made.decode_ns);
  if (test.speculation) {
    test.speculation->merge(*made.speculation);
  } else {
    test.speculation = made.speculation;
  }
}

// Passes of every width that drafts may take, at the end of the test's context.
Status time_widths(engine::Session& session, BenchTest& test, int repetitions) {
  if (!test.speculation) return {};
  const int64_t widest = session.plan().shape.verify_rows;
  TRY(session.truncate(std::min(session.position(), session.capacity() - widest)));
  for (int64_t rows = 1; rows <= widest; ++rows) {
    TRY(engine::time_passes(session, rows, repetitions, *test.speculation));
  }
  return {};
}

BenchTest make_test(kernels::Phase phase, int64_t tokens, int64_t depth) {
  BenchTest test;
  const char* kind = phase == kernels::Phase::kPrefill ? "pp" : "tg";
  test.name = fmt::format("{}{}", kind, tokens);
  if (depth > 0) test.name += fmt::format(" @ d{}", depth);
  test.phase = phase;
  test.tokens = tokens;
  test.depth = depth;
  test.first_position = phase == kernels::Phase::kDecode ? depth + 1 : depth;
  return test;
}

// Prefill and decode are interleaved, so that a slow minute of the machine hits both. Speed does
// not depend on which tokens are run, so that a checkpoint without a tokenizer will do.
Result<std::vector<BenchTest>> run_tests(engine::Session& session, const BenchOptions& options,
                                         int64_t vocabulary) {
  const auto prompt = engine::random_tokens(options.prompt, vocabulary);
  BenchTest prefill = make_test(kernels::Phase::kPrefill, options.prompt, options.depth);
  BenchTest decode = make_test(kernels::Phase::kDecode, options.generate, options.depth);
  if (options.depth > 0) TRY(session.append(engine::random_tokens(options.depth, vocabulary)));
  for (int i = -1; i < options.repetitions; ++i) {  // -1: a warm-up that is not counted
    if (options.prompt > 0) {
      TRY_ASSIGN(const int64_t ns, time_prefill(session, prefill, prompt));
      if (i >= 0) prefill.samples_ns.push_back(ns);
    }
    if (options.generate > 0) {
      TRY_ASSIGN(const engine::Generation made, time_decode(session, decode, 0));
      if (i >= 0) add_sample(decode, made);
    }
  }
  TRY(time_widths(session, decode, options.repetitions));
  std::vector<BenchTest> tests;
  if (options.prompt > 0) tests.push_back(std::move(prefill));
  if (options.generate > 0) tests.push_back(std::move(decode));
  for (BenchTest& test : tests) TRY(add_statistics(test));
  return tests;
}

std::vector<std::string> notes_of(const engine::LoadedModel& model,
                                  const engine::Session& session) {
  std::vector<std::string> notes = model.notes();
  const std::string replay = speculation_note(session.planner().switches());
  if (!replay.empty()) notes.push_back(replay);
  for (std::string& note : engine::tile_rule_notes(session.plan().calls)) {
    notes.push_back(std::move(note));
  }
  return notes;
}

// Of its weights in the format that the row names.
uint64_t model_bytes(const engine::LoadedModel& model) {
  int64_t bytes = 0;
  for (const models::PlacedWeight& weight : model.weights()) {
    bytes += weight.placed.n * row_bytes(weight.placed.type, weight.placed.k);
  }
  return static_cast<uint64_t>(bytes);
}

// A synthetic model's name, else that of the file or folder.
std::string model_label(const engine::LoadedModel& model) {
  constexpr size_t kMost = 28;
  if (const std::string& name = model.checkpoint().display_name(); !name.empty()) return name;
  const std::filesystem::path path(model.checkpoint().path());
  const std::filesystem::path last = path.has_filename() ? path : path.parent_path();
  return shorten(one_line(last.stem().string()), kMost);
}

// ---- the roofline ----

Result<int> threads_of(const BenchOptions& options, const kernels::Backend& backend) {
  TRY_ASSIGN(const kernels::SwitchSet switches, parse_switches(options.engine));
  return kernels::Planner(switches, backend.device(), backend.variants()).threads();
}

Result<Bounds> measure_bounds(const BenchOptions& options, kernels::Backend& backend) {
  kernels::BoundsOptions bounds;
  TRY_ASSIGN(bounds.threads, threads_of(options, backend));
  bounds.repetitions = options.repetitions;
  if (!options.buffer.empty()) {
    TRY_ASSIGN(bounds.buffer_bytes, parse_bytes(options.buffer));
    if (bounds.buffer_bytes == 0) return usage_error("--buffer 0 leaves nothing to read");
  }
  return backend.measure_bounds(bounds);
}

Status add_shares(std::vector<BenchTest>& tests, const engine::Session& session,
                  const Bounds& bounds) {
  for (BenchTest& test : tests) {
    const bool prefill = test.phase == kernels::Phase::kPrefill;
    TRY_ASSIGN(const kernels::Cost cost,
               prefill
                   ? engine::prefill_cost(session.model(), session.planner(), session.plan().shape,
                                          test.first_position, test.tokens)
                   : engine::decode_cost(session.model(), session.planner(), session.plan().shape,
                                         test.first_position, test.tokens));
    test.shares = shares_of(cost, test.tokens, test.mean_rate, bounds);
  }
  return {};
}

void print_bounds(const Bounds& bounds, const kernels::Backend& backend,
                  const BenchOptions& options, int threads) {
  if (options.json || options.output == "jsonl") {
    const nlohmann::json json = {{"build_commit", build_info().commit},
                                 {"build_dirty", build_info().dirty},
                                 {"device", backend.device().name},
                                 {"backend", backend.device().backend},
                                 {"n_threads", threads},
                                 {"bounds", bounds_json(bounds)}};
    if (options.json) return print_json(json);
    fmt::print("{}\n", json.dump());
    return;
  }
  const Table table = bounds_table(bounds);
  fmt::print("{}", options.output == "csv" ? table.csv() : table.text());
}

nlohmann::json to_json(const BenchTest& test, const engine::LoadedModel& model,
                       const engine::Session& session, const Bounds& bounds, int64_t load_ns) {
  const Checkpoint& checkpoint = model.checkpoint();
  nlohmann::json json = {{"build_commit", build_info().commit},
                         {"build_dirty", build_info().dirty},
                         {"device", session.planner().device().name},
                         {"backend", session.planner().device().backend},
                         {"model_filename", checkpoint.path()},
                         {"model_name", model.model().info().name},
                         {"model_family", model.model().info().family},
                         {"model_size", model_bytes(model)},
                         {"weight_format", model.weight_format()},
                         {"n_threads", session.planner().threads()},
                         {"n_chunk", session.plan().shape.chunk},
                         {"switches", session.planner().switches().changed()},
                         {"notes", notes_of(model, session)},
                         {"test", test.name},
                         {"n_tokens", test.tokens},
                         {"n_depth", test.depth},
                         {"samples_ns", test.samples_ns},
                         {"samples_ts", test.rates},
                         {"avg_ts", test.mean_rate},
                         {"stddev_ts", test.deviation},
                         {"load_ns", load_ns},
                         {"peak_bytes", session.arenas().peak_bytes()}};
  if (test.speculation) json["speculation"] = speculation_json(*test.speculation);
  if (test.shares) {
    json.update({{"bytes_per_token", test.shares->bytes_per_token},
                 {"operations_per_token", test.shares->operations_per_token},
                 {"read_share", test.shares->read},
                 {"multiply_share", test.shares->multiply},
                 {"multiply_bound", test.shares->multiply_bound},
                 {"bounds", bounds_json(bounds)}});
  }
  return json;
}

// Decode is held against what reads, prefill against what multiplies.
std::vector<std::string> share_cells(const BenchTest& test) {
  const bool prefill = test.phase == kernels::Phase::kPrefill;
  return {fmt::format("{:.2f}", test.shares->bytes_per_token * 1e-6),
          fmt::format("{:.1f}", test.shares->operations_per_token * 1e-6),
          fmt::format("{:.1f} %", 100 * (prefill ? test.shares->multiply : test.shares->read)),
          prefill ? test.shares->multiply_bound : "read"};
}

Table to_table(const std::vector<BenchTest>& tests, const engine::LoadedModel& model,
               const engine::Session& session) {
  std::vector<Table::Column> columns = {{"model"},
                                        {"size", Align::kRight},
                                        {"format"},
                                        {"backend"},
                                        {"threads", Align::kRight},
                                        {"test"},
                                        {"tok/s", Align::kRight},
                                        {"sd", Align::kRight}};
  const bool with_shares = !tests.empty() && tests.front().shares.has_value();
  if (with_shares) {
    for (const char* title : {"MB/tok", "Mop/tok", "share"}) {
      columns.push_back({title, Align::kRight});
    }
    columns.push_back({"of"});
  }
  Table table(std::move(columns));
  const std::string label = model_label(model);
  for (const BenchTest& test : tests) {
    std::vector<std::string> cells = {label,
                                      format_bytes_short(model_bytes(model)),
                                      model.weight_format(),
                                      session.planner().device().backend,
                                      std::to_string(session.planner().threads()),
                                      test.name,
                                      fmt::format("{:.2f}", test.mean_rate),
                                      fmt::format("{:.2f}", test.deviation)};
    if (with_shares) {
      for (std::string& cell : share_cells(test)) cells.push_back(std::move(cell));
    }
    table.add(std::move(cells));
  }
  return table;
}

void print(const std::vector<BenchTest>& tests, const engine::LoadedModel& model,
           const engine::Session& session, const Bounds& bounds, int64_t load_ns,
           const engine::AuditReport& audited, const BenchOptions& options) {
  if (options.json || options.output == "jsonl") {
    nlohmann::json all = nlohmann::json::array();
    for (const BenchTest& test : tests) {
      all.push_back(to_json(test, model, session, bounds, load_ns));
      if (options.audit_buffers) all.back()["audit"] = audit_json(audited);
    }
    if (options.json) {
      print_json(all);
    } else {
      for (const auto& line : all) fmt::print("{}\n", line.dump());
    }
    return;
  }
  print_notes(notes_of(model, session));
  const Table table = to_table(tests, model, session);
  if (options.output == "csv") {
    fmt::print("{}", table.csv());
    return;
  }
  if (!bounds.empty()) fmt::print("{}\n", bounds_table(bounds).text());
  fmt::print("{}", table.text());
  for (const BenchTest& test : tests) {
    if (test.speculation) fmt::print("{}: {}\n", test.name, speculation_line(*test.speculation));
  }
}

Result<ExitCode> run_roofline(const BenchOptions& options) {
  TRY_ASSIGN(kernels::Backend * backend, kernels::open_backend(options.engine.backend));
  TRY_ASSIGN(const int threads, threads_of(options, *backend));
  TRY_ASSIGN(const Bounds bounds, measure_bounds(options, *backend));
  print_bounds(bounds, *backend, options, threads);
  return kExitDone;
}

Result<ExitCode> run_bench(const BenchOptions& options) {
  if (!options.roofline && !options.buffer.empty()) {
    return usage_error("--buffer is what --roofline reads; give both");
  }
  if (options.engine.model.empty()) {
    if (options.roofline) return run_roofline(options);
    return usage_error("-m MODEL or --roofline is required; see 'reckon bench --help'");
  }
  if (options.prompt == 0 && options.generate == 0) {
    return usage_error("-p 0 and -n 0 leave nothing to measure");
  }
  std::unique_ptr<engine::LoadedModel> model;
  TRY_ASSIGN(int64_t load_ns, timed_ns([&]() -> Status {
               TRY_ASSIGN(model, open_model(options.engine));
               // Part of a load to everybody but a benchmark; there may be none.
               static_cast<void>(model->tokenizer());
               return {};
             }));
  const int64_t needed = options.depth + std::max(options.prompt, options.generate + 1);
  if (options.engine.context != 0 && options.engine.context < needed) {
    return usage_error(fmt::format("--ctx {} cannot hold the {} of this benchmark",
                                   options.engine.context, counted(needed, "token")));
  }
  TRY_ASSIGN(engine::SessionOptions session_opts,
             session_options(options.engine,
                             options.engine.context != 0 ? options.engine.context : needed));
  Bounds bounds;
  if (options.roofline) {  // before the weights take the memory
    TRY_ASSIGN(kernels::Backend * backend, kernels::open_backend(options.engine.backend));
    TRY_ASSIGN(bounds, measure_bounds(options, *backend));
  }
  kernels::BufferAudit audit;
  if (options.audit_buffers) session_opts.audit = &audit;
  std::unique_ptr<engine::Session> session;
  TRY_ASSIGN(const int64_t create_ns, timed_ns([&]() -> Status {
               TRY_ASSIGN(session, engine::Session::create(*model, session_opts));
               return {};
             }));
  load_ns += create_ns;
  TRY_ASSIGN(auto tests, run_tests(*session, options, model->model().info().vocabulary));
  if (options.roofline) TRY(add_shares(tests, *session, bounds));
  const engine::AuditReport audited = engine::audit_report(audit);
  print(tests, *model, *session, bounds, load_ns, audited, options);
  return options.audit_buffers ? conclude_audit(audited) : kExitDone;
}

}  // namespace

void add_bench_command(Cli& cli) {
  CLI::App* command =
      cli.app.add_subcommand("bench", "measure prefill and decode speed, and the machine's bounds");
  auto options = std::make_shared<BenchOptions>();
  add_engine_options(*command, options->engine);
  command->get_option("--model")->required(false);  // the roofline needs none
  command->add_option("-p,--n-prompt", options->prompt, "prefill this many tokens; 0 skips (512)")
      ->type_name("N")
      ->check(whole_number(0, kMostTokens));
  command->add_option("-n,--n-gen", options->generate, "decode this many tokens; 0 skips (128)")
      ->type_name("N")
      ->check(whole_number(0, kMostTokens));
  command->add_option("-d,--n-depth", options->depth, "behind this many tokens of context (0)")
      ->type_name("N")
      ->check(whole_number(0, kMostTokens));
  command->add_option("-r,--repetitions", options->repetitions, "how often (5)")
      ->type_name("R")
      ->check(whole_number(1, 10000));
  command->add_option("-o,--output", options->output, "table, jsonl or csv")
      ->check(one_of({"table", "jsonl", "csv"}));
  add_audit_option(*command, options->audit_buffers);
  command->add_flag("--json", options->json, "print one JSON document");
  command->add_flag("--roofline", options->roofline,
                    "measure what this machine can do at most, and print shares of it");
  command
      ->add_option("--buffer", options->buffer,
                   "what --roofline reads (8 times the last cache; 8 GiB on a GPU)")
      ->type_name("SIZE");
  command->footer(
      "Examples:\n"
      "  reckon bench -m tiny\n"
      "  reckon bench -m tiny -p 2048 -n 0 --chunk 256 -o csv\n"
      "  reckon bench -m synth:llama-8b --layers 4 --quant q4\n"
      "  reckon bench --roofline");
  command->callback([&cli, options] { cli.action = [options] { return run_bench(*options); }; });
}

}  // namespace reckon::cli
