#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "cli/queue_testing.h"
#include "ledger/postgres_testing.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kRun = {"--ledger", "ledger", "queue", "run", "queue.yaml"};

std::vector<std::string> run_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kRun;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

size_t width(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

nlohmann::json experiment(const nlohmann::json& outcome, const std::string& id) {
  for (const auto& one : outcome["experiments"]) {
    if (one["id"] == id) return one;
  }
  return {};
}

TEST(Queue, RunsToItsVerdictsThenRefusesThem) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const Finished first = sandbox.run(run_with({"--json", "--markdown", "page.md"}));
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_EQ(first.err, "");
  const nlohmann::json outcome = first.json();
  EXPECT_EQ(outcome["queue"], "deterministic");
  EXPECT_EQ(outcome["exit_code"], 0);
  EXPECT_EQ(experiment(outcome, "floor")["kind"], "floor");
  EXPECT_EQ(experiment(outcome, "floor")["floor"]["rounds"], 20);
  EXPECT_EQ(experiment(outcome, "larger-chunk")["verdict"], "LOST");
  EXPECT_EQ(experiment(outcome, "larger-chunk")["rounds"].size(), 2u);
  EXPECT_EQ(experiment(outcome, "no-effect")["verdict"], "VOID");
  EXPECT_EQ(experiment(outcome, "too-large")["verdict"], "OUT-OF-MEMORY");
  for (const auto& one : outcome["experiments"]) {
    for (const char* key : {"id", "kind", "text", "notes", "seconds"}) {
      EXPECT_TRUE(one.contains(key)) << key;
    }
  }
  EXPECT_THAT(file_text(sandbox.path("page.md")),
              AllOf(HasSubstr("# Queue deterministic"), HasSubstr("LOST"), HasSubstr("VOID")));

  const Finished again = sandbox.run(run_with({"--json"}));
  EXPECT_EQ(again.code, 3) << again.out << again.err;
  EXPECT_EQ(experiment(again.json(), "floor")["kind"], "kept");
  for (const char* id : {"larger-chunk", "no-effect", "too-large"}) {
    const nlohmann::json refused = experiment(again.json(), id);
    EXPECT_EQ(refused["kind"], "refused") << id;
    EXPECT_THAT(refused["text"].get<std::string>(), HasSubstr("--force")) << id;
  }
  const Finished checked = sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml"});
  EXPECT_EQ(checked.code, 3) << checked.out;
}

TEST(Queue, GatesOnARegression) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const Finished first = sandbox.run(run_with({"--gate", "--json"}));
  EXPECT_EQ(first.code, 4) << first.out << first.err;
  EXPECT_EQ(first.json()["exit_code"], 4);
  const Finished again = sandbox.run(run_with({"--gate", "--json"}));
  EXPECT_EQ(again.code, 4) << "the ledger knows that it is LOST";
  EXPECT_EQ(experiment(again.json(), "larger-chunk")["known_verdict"], "LOST");
}

TEST(Queue, ForcesARepeatAndRecordsWhy) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  ASSERT_EQ(sandbox.run(kRun).code, 0);
  EXPECT_EQ(sandbox.run(run_with({"--force", " "})).code, 2);
  const Finished forced = sandbox.run(run_with({"--force", "a new cable", "--json"}));
  ASSERT_EQ(forced.code, 0) << forced.out << forced.err;
  const std::string entry = experiment(forced.json(), "larger-chunk")["entry"];
  const Finished shown = sandbox.run({"--ledger", "ledger", "ledger", "show", entry});
  EXPECT_THAT(shown.out, HasSubstr("a new cable"));
}

TEST(Queue, FitsTheTerminalAndIsPlainText) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const Finished checked = sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("ledger")));  // a check writes nothing
  const Finished finished = sandbox.run(kRun);
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");  // progress is for terminals
  for (const std::string& text : {checked.out, finished.out}) {
    EXPECT_THAT(text, Not(HasSubstr("\033")));
    for (const std::string& line : lines_of(text)) EXPECT_LE(width(line), 100u) << line;
  }
}

TEST(Queue, PrintsACheckAsJson) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const Finished checked =
      sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml", "--json"});
  ASSERT_EQ(checked.code, 0) << checked.err;
  const nlohmann::json check = checked.json();
  EXPECT_EQ(check["queue"], "deterministic");
  EXPECT_EQ(experiment(check, "floor")["kind"], "would-run");
  EXPECT_EQ(experiment(check, "no-effect")["kind"], "would-be-void");
  EXPECT_EQ(experiment(check, "too-large")["kind"], "would-not-fit");
  for (const auto& one : check["experiments"]) {
    for (const char* key : {"id", "kind", "text", "notes", "only_base", "only_arm", "base_bytes",
                            "arm_bytes", "missing_noise_rounds"}) {
      EXPECT_TRUE(one.contains(key)) << key;
    }
  }
}

TEST(Queue, RunsOnAnotherModel) {
  Sandbox sandbox;
  std::string queue = deterministic_queue();
  const std::string model = "model: " + tiny_model();
  const size_t at = queue.find(model);
  ASSERT_NE(at, std::string::npos) << queue;
  queue.replace(at, model.size(), "model: nowhere");
  sandbox.write("queue.yaml", queue);
  EXPECT_EQ(sandbox.run(kRun).code, 2);
  const Finished finished = sandbox.run(run_with({"-m", tiny_model(), "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(experiment(finished.json(), "larger-chunk")["verdict"], "LOST");
  // The ledger knows it of that model; of another one it does not.
  EXPECT_EQ(sandbox.run(run_with({"-m", tiny_model()})).code, 3);
  const Finished checked = sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml", "-m",
                                        tiny_model(), "--quant", "q4", "--json"});
  EXPECT_EQ(experiment(checked.json(), "larger-chunk")["kind"], "would-run") << checked.out;
}

TEST(Queue, NoticesAPageItCannotWriteBeforeItMeasures) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const Finished finished = sandbox.run(run_with({"--markdown", "no/folder/page.md"}));
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("ledger")));
}

TEST(Queue, BlamesTheQueueWithFileAndLine) {
  Sandbox sandbox;
  std::string queue = deterministic_queue();
  queue.replace(queue.find("switch:"), 7, "swtich:");
  sandbox.write("queue.yaml", queue);
  const Finished finished = sandbox.run(kRun);
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("queue.yaml:"), HasSubstr("did you mean 'switch'")));
}

TEST(Queue, ExitsWith2WhereAnExperimentIsWrong) {
  Sandbox sandbox;
  std::string queue = deterministic_queue();
  queue.replace(queue.find("tile_order"), 10, "tile_odder");
  sandbox.write("queue.yaml", queue);
  const Finished checked = sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml"});
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out, HasSubstr("'prefill.tile_order'?"));
}

TEST(Queue, MeasuresNothingWhereALaterExperimentIsWrong) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue() + R"(
  - id: one-token
    idea: A step that the workload does not have
    switch: {key: kernel.matmul, base: exact_scalar, arm: exact_avx2}
    workload: {phase: decode, prompt: It was the best of times, generate: 1}
    metric: decode_tok_per_s
)");
  const Finished finished = sandbox.run(run_with({"--json"}));
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_EQ(experiment(finished.json(), "floor")["kind"], "paused");
  const nlohmann::json wrong = experiment(finished.json(), "one-token");
  EXPECT_EQ(wrong["error"], "usage");
  EXPECT_THAT(wrong["text"].get<std::string>(),
              HasSubstr("takes at least 2 generated tokens: 'generate' is 1"));
  EXPECT_THAT(sandbox.run({"--ledger", "ledger", "ledger", "list"}).out, HasSubstr("no entries"));
}

TEST(Queue, PausesAtItsBudgetAndGoesOn) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  EXPECT_EQ(sandbox.run(run_with({"--budget", "soon"})).code, 2);
  const Finished paused = sandbox.run(run_with({"--budget", "0.000001s", "--json"}));
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_EQ(experiment(paused.json(), "floor")["kind"], "paused");
  const Finished whole = sandbox.run(run_with({"--json"}));
  EXPECT_EQ(experiment(whole.json(), "larger-chunk")["verdict"], "LOST");
}

// Counts of finished work in the ledger and the journal beside it.
size_t bytes_written(const std::filesystem::path& folder) {
  size_t bytes = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (file.is_regular_file(error)) bytes += file.file_size(error);
  }
  return bytes;
}

// Every file in the folder that holds the text.
std::vector<std::string> files_with(const std::filesystem::path& folder, const std::string& text) {
  std::vector<std::string> found;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    if (file_text(file.path()).find(text) != std::string::npos) found.push_back(file.path());
  }
  return found;
}

TEST(Queue, KeepsWhatATeamsLedgerLacksWithTheUserAndNoPassword) {
  RECKON_NEEDS_POSTGRES();
  ledger::test::PostgresDatabase database;
  ASSERT_TRUE(database.create());
  const std::string open_url = database.url();
  const size_t at = open_url.find('@');
  const std::string url = open_url.substr(0, at) + ":hunter2" + open_url.substr(at);
  Sandbox sandbox;
  sandbox.write("queue.yaml", deterministic_queue());
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--ledger", url, "queue", "run", "queue.yaml", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run(arguments);
  };
  const Finished paused = run({"--budget", "0.000001s"});
  ASSERT_EQ(paused.code, 0) << paused.err;
  const auto place =
      *std::filesystem::directory_iterator(sandbox.path(".local/state/reckon/ledgers"));
  EXPECT_TRUE(std::filesystem::exists(place.path() / "journal"));
  const Finished whole = run({});
  ASSERT_EQ(whole.code, 0) << whole.out << whole.err;
  const nlohmann::json lost = experiment(whole.json(), "larger-chunk");
  EXPECT_EQ(lost["verdict"], "LOST");
  for (const auto& file : std::filesystem::directory_iterator(sandbox.path(""))) {
    EXPECT_FALSE(file.path().filename().string().starts_with("postgres")) << file.path();
  }
  // Neither beside the queue nor in the ledger, nor in what is shown of an entry.
  const std::string entry = lost["entry"];
  const Finished shown = sandbox.run({"--ledger=" + url, "ledger", "show", entry});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("queue run queue.yaml"), Not(HasSubstr("hunter2"))));
  const Finished merged = sandbox.run({"--ledger", "copy", "ledger", "merge", url});
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(sandbox.run({"--ledger=" + url, "ledger", "report", "-o", "pages"}).code, 0);
  EXPECT_THAT(files_with(sandbox.path(""), "hunter2"), testing::IsEmpty());
}

TEST(Queue, StopsCleanlyAtASignal) {
  Sandbox sandbox;
  std::string queue = deterministic_queue();
  queue.replace(queue.find("rounds: 20"), 10, "rounds: 1000");
  sandbox.write("queue.yaml", queue);
  const pid_t child = sandbox.start(run_with({"--json"}));
  while (bytes_written(sandbox.path("ledger")) < 20000) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it ended by itself";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  kill(child, SIGTERM);
  const Finished stopped = sandbox.finish(child);
  EXPECT_EQ(stopped.code, 128 + SIGTERM) << stopped.err;
  EXPECT_EQ(stopped.err, "");
  const nlohmann::json outcome = stopped.json();
  EXPECT_EQ(experiment(outcome, "floor")["kind"], "paused");
  EXPECT_THAT(experiment(outcome, "floor")["text"].get<std::string>(), HasSubstr("interrupted"));
  EXPECT_EQ(experiment(outcome, "too-large")["kind"], "paused");
  EXPECT_EQ(sandbox.run({"--ledger", "ledger", "ledger", "verify"}).code, 0);
}

}  // namespace
}  // namespace reckon::cli
