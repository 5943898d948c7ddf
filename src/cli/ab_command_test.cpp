#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kBase = R"(echo '{"x": 100}')";
const std::string kBetter = R"(echo '{"x": 110}')";

// `reckon ab` of commands that print a number which no clock decides, nor what else the machine
// does.
std::vector<std::string> ab(const std::string& base, const std::string& arm,
                            const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"--ledger", "ledger",   "ab",       "--base",    base,
                                     "--arm",    arm,        "--pairs",  "1",         "--warmup",
                                     "0",        "--metric", "json:$.x", "--no-pause"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The comparison's outcome.
nlohmann::json last(const Finished& finished) {
  const nlohmann::json json = finished.json();
  return json.contains("experiments") ? json["experiments"].back() : nlohmann::json();
}

TEST(Ab, SaysWhatAVerdictStillNeeds) {
  Sandbox sandbox;
  const Finished first = sandbox.run(ab(kBase, kBetter));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("INCONCLUSIVE"), HasSubstr("+10.0%"),
                    HasSubstr("x: json:$.x, higher is better"),
                    HasSubstr("20 A/A rounds missing, about "), HasSubstr("--floor 20\n")));
  const Finished json = sandbox.run(ab(kBase, kBetter, {"--json"}));
  EXPECT_EQ(json.json()["next"]["missing_noise_rounds"], 20);
  EXPECT_THAT(json.json()["next"]["command"].get<std::string>(), HasSubstr("--json --floor 20"));
  EXPECT_EQ(last(json)["rounds"].size(), 4u);  // it went on where the first one ended
}

TEST(Ab, GivesAVerdictAndRemembersIt) {
  Sandbox sandbox;
  const Finished won = sandbox.run(ab(kBase, kBetter, {"--floor", "20", "--json"}));
  ASSERT_EQ(won.code, 0) << won.err;
  EXPECT_THAT(won.err, HasSubstr("20 A/A rounds first: the base command runs 40 times"));
  EXPECT_EQ(last(won)["verdict"], "WON");
  EXPECT_EQ(won.json()["recorded"], true);
  EXPECT_FALSE(won.json().contains("next"));
  // The proof is weak, and everything says so.
  const std::string weak = "by command line and binary only";
  EXPECT_EQ(last(won)["result"]["proof"]["weak"], weak);
  EXPECT_THAT(last(won)["text"].get<std::string>(), HasSubstr(weak));
  const std::string entry = last(won)["entry"];
  const nlohmann::json shown =
      sandbox.run({"--ledger", "ledger", "ledger", "show", entry, "--json"}).json();
  EXPECT_EQ(shown["record"]["proof"]["weak"], weak);
  EXPECT_EQ(shown["details"]["scope"]["backend"], "command");
  const Finished again = sandbox.run(ab(kBase, kBetter, {"--floor", "20"}));
  EXPECT_EQ(again.code, 3) << again.err;
  EXPECT_EQ(again.err, "");  // no A/A rounds for what is known
  EXPECT_THAT(again.out, HasSubstr("--force"));
  // The entry's own queue runs.
  const Finished queue = sandbox.run({"--ledger", "ledger", "ledger", "show", entry, "--queue"});
  sandbox.write("again.yaml", queue.out);
  const Finished rerun =
      sandbox.run({"--ledger", "ledger", "queue", "run", "again.yaml", "--json"});
  EXPECT_EQ(rerun.code, 3) << rerun.out << rerun.err;
  // Lower is better, asked the other way.
  const Finished lost =
      sandbox.run(ab(kBase, kBetter, {"--better", "lower", "--floor", "20", "--json"}));
  EXPECT_EQ(last(lost)["verdict"], "LOST") << lost.err;
}

TEST(Ab, WritesNothingWhereItShallNot) {
  Sandbox sandbox;
  const Finished provisional =
      sandbox.run(ab(kBase, kBetter, {"--floor", "20", "--no-record", "--json"}));
  ASSERT_EQ(provisional.code, 0) << provisional.err;
  EXPECT_EQ(last(provisional)["verdict"], "WON");
  EXPECT_EQ(provisional.json()["recorded"], false);
  EXPECT_FALSE(last(provisional).contains("entry"));
  EXPECT_THAT(last(provisional)["text"].get<std::string>(),
              HasSubstr("not recorded, provisional: WON"));
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("ledger")));
  EXPECT_FALSE(std::filesystem::exists(sandbox.path(".local")));
}

// Keeps half of the processors busy while it lives.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < (std::thread::hardware_concurrency() + 1) / 2; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (true) {
        }
      }
      children_.push_back(child);
    }
  }
  ~BusyMachine() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::vector<pid_t> children_;
};

TEST(Ab, CountsNoPairWhileOthersKeepTheMachineBusy) {
  Sandbox sandbox;
  const BusyMachine busy;
  const auto timed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--ledger", "ledger",     "ab",      "--base", "sleep 0.2",
                                       "--arm",    "sleep 0.21", "--pairs", "1",      "--warmup",
                                       "0",        "--rounds",   "1",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run(arguments);
  };
  const Finished paused = timed({"--budget", "3s"});
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_EQ(last(paused)["kind"], "paused");
  EXPECT_THAT(last(paused)["text"].get<std::string>(), HasSubstr("0 finished pairs wait"));
  // The journal keeps the pair, and the verdict says that it did not count.
  const Finished measured = timed({"--no-pause"});
  EXPECT_EQ(last(measured)["verdict"], "INCONCLUSIVE") << measured.out << measured.err;
  EXPECT_THAT(last(measured)["text"].get<std::string>(), HasSubstr("other processes took "));
}

TEST(Ab, CallsABrokenArmBroken) {
  Sandbox sandbox;
  const Finished broken = sandbox.run(ab(kBase, "echo no number >&2; exit 7", {"--json"}));
  ASSERT_EQ(broken.code, 0) << broken.err;
  EXPECT_EQ(last(broken)["verdict"], "BROKE");
  EXPECT_THAT(last(broken)["text"].get<std::string>(),
              HasSubstr("the arm broke: exit code 7; it said: no number"));
  EXPECT_FALSE(last(broken)["result"].contains("numbers"));
  const Finished unread = sandbox.run(ab(kBase, R"(echo '{"y": 1}')", {"--json"}));
  EXPECT_THAT(last(unread)["text"].get<std::string>(), HasSubstr("no $.x: $ is an object with y"));
  const Finished hung = sandbox.run(ab(kBase, "sleep 100", {"--timeout", "1s", "--json"}));
  EXPECT_THAT(last(hung)["text"].get<std::string>(), HasSubstr("the arm broke: no end within 1 s"));
}

TEST(Ab, CallsEqualDispatchVoid) {
  Sandbox sandbox;
  const std::vector<std::string> file{"--dispatch-file", "log", "--json"};
  const Finished equal = sandbox.run(
      ab(kBase + "; echo matmul tile8 > log", kBetter + "; echo matmul tile8 > log", file));
  ASSERT_EQ(equal.code, 0) << equal.err;
  EXPECT_EQ(last(equal)["verdict"], "VOID");
  EXPECT_FALSE(last(equal)["result"].contains("numbers"));
  const Finished other = sandbox.run(
      ab(kBase + "; echo matmul tile8 > log", kBetter + "; echo matmul tile16 > log", file));
  EXPECT_EQ(last(other)["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(last(other)["result"]["proof"]["observed"], true);
  EXPECT_EQ(last(other)["result"]["proof"]["only_arm"][0], "run matmul tile16");
  EXPECT_FALSE(last(other)["result"]["proof"].contains("weak"));
}

TEST(Ab, BlamesWhatWasTyped) {
  Sandbox sandbox;
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Finished finished = sandbox.run(arguments);
    EXPECT_EQ(finished.code, 2) << finished.out << finished.err;
    EXPECT_TRUE(finished.one_error_line()) << finished.err;
    return finished.err;
  };
  EXPECT_THAT(error(ab(kBase, "./no-such-bench")),
              AllOf(HasSubstr("reckon: './no-such-bench' is no program"), Not(HasSubstr(":0:"))));
  EXPECT_THAT(error(ab(kBase, "no_such_bench")), HasSubstr("no_such_bench"));
  EXPECT_THAT(error(ab(kBase, kBase)), HasSubstr("the same command"));
  EXPECT_THAT(error({"ab", "--base", kBase, "--arm", kBetter, "--metric", "$.x"}),
              HasSubstr("--metric: '$.x' says not how the metric is read"));
  EXPECT_THAT(error(ab(kBase, kBetter, {"--env", "X"})), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(error(ab(kBase, kBetter, {"--claim", "2"})), HasSubstr("--claim"));
  EXPECT_THAT(error(ab(kBase, kBetter, {"--budget", "soon"})),
              HasSubstr("--budget: 'soon' is not a time"));
  EXPECT_THAT(error(ab("", kBetter)), HasSubstr("--base: the command is empty"));
  EXPECT_THAT(error(ab(kBase, " \n")), HasSubstr("--arm: the command is empty"));
  EXPECT_THAT(error({"ab", "--base", kBase, "--arm", kBetter, "--metric", "regex:"}),
              HasSubstr("--metric: 'regex:' has no pattern"));
  EXPECT_THAT(error({"--ledger", "", "ab", "--base", kBase, "--arm", kBetter}),
              HasSubstr("--ledger: a folder is needed"));
  EXPECT_THAT(error({"ab", "--base", "true"}), HasSubstr("--arm"));
  const Finished list = sandbox.run({"--ledger", "ledger", "ledger", "list"});
  EXPECT_THAT(list.out, HasSubstr("no entries"));
}

TEST(Ab, SetsVariables) {
  Sandbox sandbox;
  const Finished finished =
      sandbox.run(ab("echo \"{\\\"x\\\": $N}\"", "echo \"{\\\"x\\\": ${N}0}\"",
                     {"--env", "N=7", "--no-record", "--json"}));
  EXPECT_EQ(last(finished)["result"]["numbers"]["base_values"][0], 7) << finished.err;
  EXPECT_EQ(last(finished)["result"]["numbers"]["arm_values"][0], 70);
}

TEST(Ab, CommandQueuesCanBeChecked) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", R"(name: n
runner: command
experiments:
  - id: rebuilt
    idea: A build that is the same
    switch: {key: build, base: old, arm: new}
    command: ["./{build}/bench"]
)");
  for (const char* build : {"old", "new"}) {
    std::filesystem::create_directory(sandbox.path(build));
    const std::string file = sandbox.write(std::string(build) + "/bench", "#!/bin/sh\necho 1\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  const Finished checked = sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml"});
  EXPECT_EQ(checked.code, 3) << checked.err;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("VOID"), HasSubstr("same program")));
  const Finished asked = sandbox.run({"--ledger", "ledger", "ledger", "consult", "queue.yaml"});
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("worth measuring"));
}

}  // namespace
}  // namespace reckon::cli
