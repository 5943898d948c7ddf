#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/queue_testing.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// A ledger with the four entries of the deterministic queue, made once.
class LedgerCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new Sandbox();
    made_->write("queue.yaml", deterministic_queue());
    first_ = made_->run({"--ledger", "ledger", "queue", "run", "queue.yaml"});
  }
  static void TearDownTestSuite() {
    delete made_;
    made_ = nullptr;
  }

  void SetUp() override {
    ASSERT_EQ(first_.code, 0) << first_.err;
    std::filesystem::copy(made_->path("ledger"), sandbox_.path("ledger"),
                          std::filesystem::copy_options::recursive);
    std::filesystem::copy(made_->path("queue.yaml"), sandbox_.path("queue.yaml"));
  }

  // The ledger is found upward from the working folder.
  Finished ledger(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "ledger");
    return sandbox_.run(arguments);
  }
  std::string entry_with(const std::string& verdict) {
    return ledger({"list", "--verdict", verdict, "--json"}).json()["entries"][0]["id"];
  }
  std::filesystem::path ledger_file() {
    for (const auto& file : std::filesystem::directory_iterator(sandbox_.path("ledger"))) {
      if (file.path().extension() == ".jsonl") return file.path();
    }
    return {};
  }

  static Sandbox* made_;
  static Finished first_;
  Sandbox sandbox_;
};

Sandbox* LedgerCommand::made_ = nullptr;
Finished LedgerCommand::first_;

TEST_F(LedgerCommand, ListsEntriesOldestFirst) {
  const Finished text = ledger({"list"});
  EXPECT_EQ(text.code, 0) << text.err;
  const std::vector<std::string> lines = lines_of(text.out);
  ASSERT_EQ(lines.size(), 6u) << text.out;
  EXPECT_THAT(lines[2], MatchesRegex("rk-[a-z2-7]{12}  [0-9-]{10}  aa  .*identical arms"));
  EXPECT_THAT(lines[3], AllOf(HasSubstr("LOST"), HasSubstr("prefill.chunk 8 -> 32")));

  const nlohmann::json json = ledger({"list", "--json"}).json();
  ASSERT_EQ(json["entries"].size(), 4u);
  for (const char* key :
       {"id", "kind", "verdict", "effect", "metric", "switch", "base", "arm", "model", "device",
        "idea", "rounds_measured", "imported", "status", "created", "updated", "writer"}) {
    EXPECT_TRUE(json["entries"][1].contains(key)) << key;
  }
  EXPECT_EQ(json["entries"][1]["verdict"], "LOST");
  EXPECT_LT(json["entries"][1]["effect"], 0);
  EXPECT_EQ(json["entries"][0]["verdict"], nullptr);
  EXPECT_EQ(json["entries"][0]["rounds_measured"], 20);
}

TEST_F(LedgerCommand, FiltersItsList) {
  const auto count = [&](std::vector<std::string> filter) {
    filter.insert(filter.begin(), {"list", "--json"});
    return ledger(filter).json()["entries"].size();
  };
  EXPECT_EQ(count({"--switch", "prefill.chunk"}), 2u);
  EXPECT_EQ(count({"--switch", "prefill.chunk", "--verdict", "lost"}), 1u);
  EXPECT_EQ(count({"--verdict", "aa"}), 1u);
  EXPECT_EQ(count({"--verdict", "WON"}), 0u);
  EXPECT_EQ(count({"--model", "TINY-llama"}), 4u);
  EXPECT_EQ(count({"--model", "qwen3"}), 0u);
  EXPECT_EQ(count({"--device", "no such device"}), 0u);
  EXPECT_THAT(ledger({"list", "--verdict", "WON"}).out, HasSubstr("no matching entries"));
  EXPECT_EQ(count({"--switch", "cpu.isa"}), 0u);
}

TEST_F(LedgerCommand, ShowsAnEntryByAnyUniquePrefix) {
  const std::string id = entry_with("LOST");
  const Finished shown = ledger({"show", id.substr(3, 6)});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith(id + "  prefill.chunk 8 -> 32\n"));
  for (const char* part :
       {"\nidea          Run the prompt",
        "\nverdict       LOST: ", "\nrounds        1: ", "\neffect  ", "\nnoise band  ",
        "\nclaim         +1.0%", "\ndispatch      differs", "\ntokens        identical",
        "\nmemory        peak", "\ndevice  ", "\nmodel  ", "\nworkload  ", "\nreproduce  "}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
  EXPECT_THAT(ledger({"show", entry_with("VOID")}).out, HasSubstr("dispatch      the same"));
  EXPECT_THAT(ledger({"show", entry_with("OUT-OF-MEMORY")}).out,
              AllOf(HasSubstr("memory        plan of base"), HasSubstr("weights")));
  const std::string floor = ledger({"show", entry_with("aa")}).out;
  EXPECT_THAT(floor, HasSubstr("20 rounds feed the noise band"));
  EXPECT_THAT(floor, MatchesRegex(".*\nrounds        1: [0-9.]+ KiB -> [0-9.]+ KiB \\(.*"));
  EXPECT_THAT(floor, HasSubstr("\nreproduce     reckon ledger show "));
  const Finished named = sandbox_.run({"--ledger", "ledger", "ledger", "show", id});
  EXPECT_THAT(named.out, HasSubstr("\nreproduce     reckon --ledger ledger ledger show "));
}

TEST_F(LedgerCommand, ShowsAnEntryAsJson) {
  const nlohmann::json json = ledger({"show", entry_with("LOST"), "--json"}).json();
  for (const char* key : {"id", "details", "record", "rounds", "notes", "unfinished", "figures",
                          "status_reason", "superseded_by", "import_source", "verdict_time"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["rounds"].size(), 2u);
  EXPECT_EQ(json["details"]["scope"]["switch"], "prefill.chunk");
  EXPECT_EQ(json["record"]["verdict"], "LOST");
}

TEST_F(LedgerCommand, AmendsEntriesWithReasons) {
  const std::string lost = entry_with("LOST");
  const std::string too_large = entry_with("OUT-OF-MEMORY");
  EXPECT_EQ(ledger({"overturn", lost}).code, 2);
  EXPECT_EQ(ledger({"overturn", lost, "--reason", ""}).code, 2);
  const Finished noted = ledger({"note", lost, "seen twice", "--mechanism", "larger buffers",
                                 "--revisit-when", "chunk >= 64"});
  EXPECT_EQ(noted.code, 0) << noted.err;
  EXPECT_THAT(noted.out, HasSubstr(lost + ": noted by "));
  const Finished superseded =
      ledger({"supersede", lost, "--by", too_large, "--reason", "a longer prompt", "--json"});
  EXPECT_EQ(superseded.code, 0) << superseded.err;
  EXPECT_EQ(superseded.json()["event"], "superseded");
  const Finished page = ledger({"show", lost});
  EXPECT_THAT(page.out, AllOf(HasSubstr("mechanism     larger buffers"), HasSubstr("seen twice"),
                              HasSubstr("superseded by " + too_large)));
  EXPECT_THAT(ledger({"show", too_large}).out, HasSubstr("supersedes    " + lost));
  EXPECT_EQ(ledger({"show", lost, "--json"}).json()["chain"]["superseded_by"][0]["id"], too_large);
  const Finished ring = ledger({"supersede", too_large, "--by", lost, "--reason", "x"});
  EXPECT_EQ(ring.code, 2);
  EXPECT_TRUE(ring.one_error_line()) << ring.err;

  EXPECT_EQ(ledger({"consult", "queue.yaml"}).code, 3);
  EXPECT_EQ(ledger({"reopen", lost, "--reason", "a new allocator"}).code, 0);
  EXPECT_EQ(ledger({"consult", "queue.yaml"}).code, 0);
  EXPECT_EQ(ledger({"overturn", lost, "--reason", "the limit was set"}).code, 0);
  EXPECT_THAT(ledger({"list"}).out, HasSubstr("LOST (overturned)"));
}

TEST_F(LedgerCommand, ReportsAsPages) {
  const Finished made = ledger({"report", "-o", "report"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "4 entries in report/index.html\n");
  const std::string id = entry_with("LOST");
  const std::string page = file_text(sandbox_.path("report/entries/" + id + ".html"));
  EXPECT_THAT(page,
              AllOf(HasSubstr("Run the prompt in one chunk"), HasSubstr("<svg class=\"plot\"")));
  // The twin is what `show` prints, and the pairs.
  EXPECT_THAT(file_text(sandbox_.path("report/entries/" + id + ".txt")),
              StartsWith(ledger({"show", id}).out));
  const std::string index = file_text(sandbox_.path("report/index.html"));
  EXPECT_THAT(index, HasSubstr("4 entries: 4 measured here."));

  // The same ledger gives the same pages; a filter takes the others away.
  EXPECT_EQ(ledger({"report", "-o", "report"}).code, 0);
  EXPECT_EQ(file_text(sandbox_.path("report/index.html")), index);
  const Finished lost = ledger({"report", "-o", "report", "--verdict", "lost", "--json"});
  EXPECT_EQ(lost.json()["entries"], 1);
  EXPECT_GT(lost.json()["removed"], 6);
  EXPECT_FALSE(
      std::filesystem::exists(sandbox_.path("report/entries/" + entry_with("VOID") + ".html")));
}

TEST_F(LedgerCommand, ReportsOnlyWhereNothingElseLies) {
  const Finished refused = ledger({"report", "-o", "ledger"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.one_error_line()) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("no report wrote"));
  EXPECT_EQ(ledger({"report", "-o", "out", "--verdict", "WIN"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(sandbox_.path("out")));
}

TEST_F(LedgerCommand, GivesTheQueueThatReproducesAnEntry) {
  const Finished queue = ledger({"show", entry_with("LOST"), "--queue"});
  EXPECT_EQ(queue.code, 0);
  sandbox_.write("again.yaml", queue.out);
  const Finished again = sandbox_.run({"queue", "run", "again.yaml", "--json"});
  EXPECT_EQ(again.code, 3) << again.out << again.err;  // the same scope: known already
}

TEST_F(LedgerCommand, ReplaysAnEntryBesideTheOldVerdict) {
  const std::string old = entry_with("LOST");
  const Finished replay = ledger({"replay", old, "--json"});
  ASSERT_EQ(replay.code, 0) << replay.out << replay.err;
  const nlohmann::json json = replay.json();
  EXPECT_EQ(json["then"]["id"], old);
  EXPECT_EQ(json["now"]["verdict"], "LOST");
  EXPECT_NE(json["now"]["entry"], old);
  EXPECT_EQ(json["agrees"], true);
  EXPECT_TRUE(json["scope_differences"].empty());
  EXPECT_THAT(ledger({"show", json["now"]["entry"]}).out, HasSubstr("replay of " + old));

  const Finished text = ledger({"replay", entry_with("VOID")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("then  rk-"), HasSubstr("\nnow   rk-"),
                              HasSubstr("\nthe verdicts agree\n")));
  EXPECT_EQ(ledger({"replay", "rk-zzzz"}).code, 2);
  const Finished floor = ledger({"replay", entry_with("aa")});
  EXPECT_EQ(floor.code, 2);
  EXPECT_THAT(floor.err, HasSubstr("A/A rounds, which have no verdict to replay"));
}

TEST_F(LedgerCommand, KnowsWhatWasMeasured) {
  const Finished text = ledger({"consult", "queue.yaml"});
  EXPECT_EQ(text.code, 3) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("larger-chunk: prefill.chunk 8 -> 32"), HasSubstr("  known  "),
                    HasSubstr("LOST"), HasSubstr("\nnot asked: floor (kind: aa): ")));
  const Finished json = ledger({"consult", "queue.yaml", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_EQ(json.json()["known"], true);
  EXPECT_EQ(json.json()["skipped"], nlohmann::json({"floor"}));
  ASSERT_EQ(json.json()["answers"].size(), 3u);
  for (const char* key :
       {"experiment", "scope", "block", "join", "allowed", "stale", "offers", "near"}) {
    EXPECT_TRUE(json.json()["answers"][0].contains(key)) << key;
  }
  EXPECT_EQ(json.json()["answers"][0]["block"]["verdict"], "LOST");
}

TEST_F(LedgerCommand, KnowsNothingInAnEmptyLedger) {
  const Finished text = sandbox_.run({"--ledger", "other", "ledger", "consult", "queue.yaml"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("worth measuring"));
  EXPECT_FALSE(std::filesystem::exists(sandbox_.path("other")));
}

TEST_F(LedgerCommand, ConsultsASwitchWithoutAQueue) {
  const Finished near = ledger(
      {"consult", "--switch", "prefill.chunk=8,32", "-m", tiny_model(), "--phase", "prefill"});
  EXPECT_EQ(near.code, 0) << near.err;
  EXPECT_THAT(near.out,
              AllOf(HasSubstr("prefill.chunk 8 -> 32"), HasSubstr("  near  "), HasSubstr("LOST")));
}

// Whatever of an experiment counts can be said without its queue.
TEST_F(LedgerCommand, ConsultsASwitchWithItsWholeWorkload) {
  const std::vector<std::string> chunk = {"consult",
                                          "--switch",
                                          "prefill.chunk=8,32",
                                          "-m",
                                          tiny_model(),
                                          "--phase",
                                          "prefill",
                                          "--metric",
                                          "peak_bytes",
                                          "--prompt",
                                          "It was the best of times",
                                          "--prompt-tokens",
                                          "32",
                                          "--generate",
                                          "2",
                                          "--pairs",
                                          "1",
                                          "--set",
                                          "prefill.numerics=exact",
                                          "--claim",
                                          "+1%"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = chunk;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ledger(arguments);
  };
  const Finished known = with({});
  EXPECT_EQ(known.code, 3) << known.out << known.err;
  EXPECT_THAT(known.out, AllOf(HasSubstr("  known  "), HasSubstr("LOST")));
  for (const auto& other : std::vector<std::vector<std::string>>{
           {"--context", "64"}, {"--op", "matmul"}, {"--memory-limit", "8GiB"}}) {
    const Finished near = with(other);
    EXPECT_EQ(near.code, 0) << other[0] << near.err;
    EXPECT_THAT(near.out, HasSubstr("  near  "));
  }
  EXPECT_THAT(with({"--chunk", "16"}).err, HasSubstr("is the switch between the arms"));

  const std::vector<std::string> bands = {"consult",
                                          "--switch",
                                          "prefill.tile_order=row,band8",
                                          "-m",
                                          tiny_model(),
                                          "--phase",
                                          "prefill",
                                          "--metric",
                                          "peak_bytes",
                                          "--op",
                                          "matmul",
                                          "--pairs",
                                          "1",
                                          "--prompt-file",
                                          "prompt.txt",
                                          "--prompt-tokens",
                                          "32"};
  sandbox_.write("prompt.txt", "It was the best of times");
  const Finished none = ledger(bands);
  EXPECT_EQ(none.code, 3) << none.out << none.err;
  EXPECT_THAT(none.out, HasSubstr("VOID"));
}

TEST_F(LedgerCommand, VerifiesEveryLine) {
  const Finished good = ledger({"verify"});
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_THAT(good.out, StartsWith("ok: "));

  std::string text = file_text(ledger_file());
  const size_t second = text.find('\n') + 1;
  text.replace(text.find("\"median_log\":", second), 13, "\"median_log\":1");
  std::ofstream(ledger_file(), std::ios::binary | std::ios::trunc) << text;
  const Finished bad = ledger({"verify"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, HasSubstr(ledger_file().filename().string() + ":2: "));
  EXPECT_TRUE(bad.one_error_line()) << bad.err;
  EXPECT_THAT(bad.err, HasSubstr("reckon: 1 error beside "));
  const Finished json = ledger({"verify", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json()["ok"], false);
  EXPECT_EQ(json.json()["errors"].size(), 1u);
}

TEST_F(LedgerCommand, MergesAnotherLedger) {
  const Finished merged = sandbox_.run({"--ledger", "other", "ledger", "merge", "ledger"});
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("added to other, 0 known already"));
  EXPECT_EQ(sandbox_.run({"--ledger", "other", "ledger", "list", "--json"}).json()["entries"],
            ledger({"list", "--json"}).json()["entries"]);
  const Finished again = ledger({"merge", "other", "--json"});
  EXPECT_EQ(again.json()["added"], 0);
  EXPECT_GT(again.json()["known"], 4);
  EXPECT_EQ(ledger({"merge", "nowhere"}).code, 2);
  std::ofstream(ledger_file(), std::ios::binary | std::ios::app) << "{}\n";
  const Finished damaged = sandbox_.run({"--ledger", "third", "ledger", "merge", "ledger"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("left out: "));
}

TEST_F(LedgerCommand, LintsWhatCitesIt) {
  const std::string lost = entry_with("LOST");
  std::filesystem::create_directories(sandbox_.path("rules"));
  sandbox_.write("rules/chunk.yaml",
                 "rules:\n  - {when: {metric: peak_bytes}, ledger: " + lost + "}\n");
  const Finished good = ledger({"lint"});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr("1 citation, 0 unmeasured, 3 verdicts looked at"));

  std::filesystem::create_directories(sandbox_.path("src"));
  sandbox_.write("src/x.cpp", "// ledger: rk-222222222222\n// ledger: unmeasured\n");
  const Finished bad = ledger({"lint", "--json"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.json()["errors"].size(), 1u);
  EXPECT_EQ(bad.json()["unmeasured"], 1);
  EXPECT_EQ(ledger({"lint", "rules"}).code, 0);
  EXPECT_EQ(ledger({"overturn", lost, "--reason", "wrong"}).code, 0);
  EXPECT_THAT(ledger({"lint", "rules"}).out, HasSubstr("which was overturned: wrong"));
  EXPECT_EQ(ledger({"lint", "nowhere"}).code, 2);
}

TEST_F(LedgerCommand, ExportsAndImportsSamples) {
  const std::string aa = entry_with("aa");
  const Finished go = ledger({"export", "--format", "go", aa});
  EXPECT_EQ(go.code, 0) << go.err;
  EXPECT_EQ(lines_of(go.out).size(), 40u);
  EXPECT_THAT(go.out, StartsWith("BenchmarkReckon/entry=" + aa + "/arm=base 1 "));
  EXPECT_THAT(ledger({"export", "--format", "markdown", "--verdict", "LOST"}).out,
              HasSubstr("| LOST | "));
  EXPECT_THAT(ledger({"export", "--format", "csv"}).out, StartsWith("entry,verdict,"));
  const Finished bytes = ledger({"export", "--format", "gbench", aa});
  EXPECT_EQ(bytes.code, 2);
  EXPECT_TRUE(bytes.one_error_line()) << bytes.err;
  EXPECT_EQ(ledger({"export", "--format", "xml"}).code, 2);
  EXPECT_EQ(ledger({"export", "--format", "go", "-o", "out.txt", aa}).code, 0);

  const Finished imported = ledger({"import", "out.txt", "--switch", "k=a,b", "--base",
                                    "Reckon/entry=" + aa + "/arm=base", "--arm",
                                    "Reckon/entry=" + aa + "/arm=arm", "--json"});
  EXPECT_EQ(imported.code, 0) << imported.err;
  const std::string id = imported.json()["entries"][0];
  const Finished shown = ledger({"show", id});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("k a -> b"), HasSubstr("none was reported"),
                               HasSubstr("reported by out.txt (go), not measured here"),
                               HasSubstr("of 20 samples")));
  EXPECT_EQ(ledger({"import", "out.txt", "--base", "x"}).code, 2);
  EXPECT_EQ(ledger({"import", "queue.yaml"}).code, 2);
  EXPECT_EQ(ledger({"import", "nowhere.json"}).code, 2);
}

TEST_F(LedgerCommand, ImportsReportedEntries) {
  sandbox_.write("reported.yaml",
                 "source: a paper\nentries:\n  - {name: x, idea: y, model: m, switch: {key: "
                 "prefill.chunk, base: 8, arm: 32}, metric: ms, verdict: WON, effect: 0.1}\n");
  EXPECT_EQ(ledger({"import", "reported.yaml"}).code, 0);
  EXPECT_THAT(ledger({"list"}).out, HasSubstr("WON (reported)"));
  EXPECT_EQ(ledger({"consult", "queue.yaml"}).code, 3);
}

// What this repository ships must hold.
TEST_F(LedgerCommand, LintsTheProjectItself) {
  const std::string root = kProjectFolder;
  std::vector<std::string> arguments = {"--ledger", root + "/ledger", "ledger", "lint"};
  for (const char* folder : {"/src", "/queues", "/rules", "/recipes"}) {
    if (std::filesystem::exists(root + folder)) arguments.push_back(root + folder);
  }
  ASSERT_THAT(arguments, testing::Contains(root + "/rules"));
  const Finished lint = sandbox_.run(arguments);
  EXPECT_EQ(lint.code, 0) << lint.out << lint.err;
  // Every rule cites something or says that it is unmeasured.
  const Finished rules =
      sandbox_.run({"--ledger", root + "/ledger", "ledger", "lint", root + "/rules", "--json"});
  EXPECT_GT(rules.json()["citations"].get<int>() + rules.json()["unmeasured"].get<int>(), 0)
      << rules.out;
}

// Others measured a switch that is not of this version; consulting says what they found, on which
// other device.
TEST_F(LedgerCommand, ListsReportedEntriesOfOtherDevicesAsNear) {
  const std::string root = kProjectFolder;
  const Finished near =
      sandbox_.run({"--ledger", root + "/ledger", "ledger", "consult", "--switch",
                    "moe.expert_tile=32,64", "-m", tiny_model(), "--phase", "prefill"});
  EXPECT_EQ(near.code, 0) << near.err;
  std::string text = near.out;
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_THAT(text, AllOf(HasSubstr("  near  "), HasSubstr("LOST -3.9%"),
                          HasSubstr("device.vendor apple there"), HasSubstr("imported on")));
  EXPECT_EQ(ledger({"consult", "--switch", "no.such=1,2", "-m", tiny_model()}).code, 2);
}

TEST_F(LedgerCommand, WarnsOfATornLine) {
  std::ofstream(ledger_file(), std::ios::binary | std::ios::app) << "{\"body\":{\"text";
  const Finished finished = ledger({"list", "--json"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.json()["entries"].size(), 4u);
  EXPECT_THAT(finished.err, StartsWith("reckon: warning: "));
}

TEST_F(LedgerCommand, UsesTheUsersLedgerWhereNoneIsNear) {
  std::filesystem::remove_all(sandbox_.path("ledger"));
  const Finished finished = ledger({"list"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, HasSubstr(".local/share/reckon/ledger"));
}

}  // namespace
}  // namespace reckon::cli
