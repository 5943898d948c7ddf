#include "cli/ledger_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ledger::Entry lost_entry() {
  ledger::Entry entry;
  entry.id = "rk-abcdefghijkl";
  entry.created = entry.updated = entry.verdict_time = "2026-09-14T08:30:00Z";
  entry.writer = "ann";
  entry.idea.text = "Walk weight rows in bands";
  entry.idea.device_name = "Some GPU";
  entry.idea.model_name = "models/big.gguf";
  entry.idea.scope.switch_key = "prefill.tile_order";
  entry.idea.scope.base_value = "row";
  entry.idea.scope.arm_value = "band8";
  entry.idea.scope.device.isa = "sm_90";
  entry.idea.scope.device.units = 132;
  entry.idea.scope.base_switches = {{"prefill.chunk", "2048"}, {"cpu.threads", "4"}};
  entry.idea.scope.arm_switches = {{"prefill.chunk", "2048"}};
  ledger::VerdictBody verdict;
  verdict.verdict = ledger::Verdict::kLost;
  verdict.numbers.emplace();
  verdict.numbers->metric = "prefill_tok_per_s";
  verdict.numbers->unit = "tok/s";
  verdict.numbers->effect = -0.039;
  verdict.mechanism = "Fewer blocks in flight";
  verdict.conditions = "Wide devices";
  verdict.revisit_when = {"chunk >= 4096", "sms < 60"};
  verdict.lever = "tokens a chunk";
  verdict.lever_entry = "rk-mnopqrstuvwx";
  verdict.evidence = {"occupancy 31%"};
  verdict.tokens.emplace();
  verdict.tokens->first_divergence.emplace();
  verdict.tokens->first_divergence->position = 7;
  entry.verdict = verdict;
  return entry;
}

TEST(LedgerText, SaysWhyAndWhatNext) {
  const std::string page = entry_page(lost_entry(), {});
  EXPECT_THAT(page, AllOf(HasSubstr("mechanism     Fewer blocks in flight\n"),
                          HasSubstr("conditions    Wide devices\n"),
                          HasSubstr("revisit when  chunk >= 4096\n              sms < 60\n"),
                          HasSubstr("lever         tokens a chunk\n"),
                          HasSubstr("pulled by     rk-mnopqrstuvwx\n"),
                          HasSubstr("evidence      occupancy 31%\n")));
  EXPECT_THAT(page, HasSubstr("diverge at position 7"));
  EXPECT_THAT(page, HasSubstr("Some GPU (sm_90, 132 SMs)"));
  EXPECT_THAT(page, AllOf(HasSubstr("prefill.chunk=2048\n"), HasSubstr("cpu.threads=4 (base)\n")));
  EXPECT_THAT(page, Not(HasSubstr("\nmemory")));
}

TEST(LedgerText, TellsTheHistoryOfAnEntry) {
  ledger::Entry entry = lost_entry();
  entry.status = ledger::EntryStatus::kSuperseded;
  entry.superseded_by = "rk-222222222222";
  entry.notes.push_back({"2026-10-01T00:00:00Z", "bob", "seen again"});
  entry.history.push_back({ledger::EntryStatus::kSuperseded, "2026-09-20T00:00:00Z", "cy",
                           "larger chunks", "rk-222222222222"});
  ledger::Summary successor = summary_of(lost_entry());
  successor.id = "rk-222222222222";
  PageContext context;
  context.chain = {{successor}, {successor}, {successor}};
  EXPECT_THAT(
      entry_page(entry, context),
      AllOf(
          HasSubstr("status        superseded\n"),
          HasSubstr("history       2026-09-20 cy: superseded by rk-222222222222: larger chunks\n"),
          HasSubstr("superseded by rk-222222222222 LOST -3.9%, 2026-09-14, prefill.tile_order"),
          HasSubstr("supersedes    rk-222222222222 LOST"),
          HasSubstr("lever of      rk-222222222222 LOST"),
          HasSubstr("note          2026-10-01 bob: seen again")));
  entry.imported = true;
  entry.import_source = "a paper";
  EXPECT_THAT(entry_page(entry, {}), HasSubstr("reported by a paper, not measured here"));
}

TEST(LedgerText, ReproducesFromTheLedgerThatWasNamed) {
  ledger::Entry entry = lost_entry();
  entry.idea.reproduce.queue_text = "name: x";
  const auto reproduce = [&](const std::string& named) {
    std::string page = entry_page(entry, {"", named, {}});
    page = page.substr(page.find("reproduce"));
    std::erase(page, '\n');
    return page;
  };
  EXPECT_THAT(reproduce(""), AllOf(HasSubstr("reckon ledger show rk-abcdefghijkl --queue"),
                                   Not(HasSubstr("--ledger"))));
  EXPECT_THAT(reproduce("my book"), HasSubstr("reckon --ledger 'my book' ledger show"));
  EXPECT_THAT(reproduce("book"), HasSubstr("reckon --ledger book"));
}

TEST(LedgerText, GivesRoundsTheirUnitAndCountsThem) {
  ledger::Entry entry;
  entry.id = "rk-abcdefghijkl";
  entry.idea.kind = ledger::EntryKind::kFloor;
  entry.idea.scope.metric = "decode_tok_per_s";
  entry.idea.scope.device = {"GenuineIntel", "avx512", 1, 15};
  entry.rounds.emplace_back();
  entry.rounds[0].round.base_value = entry.rounds[0].round.arm_value = 100;
  entry.rounds[0].round.pairs.emplace_back();
  EXPECT_THAT(entry_page(entry, {"tok/s", "", {}}),
              AllOf(HasSubstr("identical arms on purpose: 1 round feeds the noise band"),
                    HasSubstr("rounds        1: 100.0 -> 100.0 tok/s (+0.0%), 1 pair, "),
                    HasSubstr("avx512 hardware, 1 core, 15 GiB")));
}

TEST(LedgerText, HidesABandOfTooFewRounds) {
  ledger::Entry entry = lost_entry();
  ledger::Numbers& numbers = *entry.verdict->numbers;
  numbers.interval = ledger::Interval{-0.9, 9};
  numbers.noise_band = ledger::Interval{-0.99, 99};
  numbers.noise_rounds = 4;
  EXPECT_THAT(entry_page(entry, {}),
              AllOf(HasSubstr("noise band    not yet known: 4 of 20 A/A rounds\n"),
                    HasSubstr("effect        -3.9%\n")));
  numbers.noise_rounds = 20;
  numbers.noise_band = ledger::Interval{-0.139, 0.162};
  EXPECT_THAT(entry_page(entry, {}),
              AllOf(HasSubstr("noise band    -13.9% to +16.2%, from 20 A/A rounds\n"),
                    HasSubstr("effect        -3.9%, interval -90.0% to +900.0%\n")));
}

TEST(LedgerText, SaysOfFiguresWhatIsKnown) {
  ledger::Entry entry;
  entry.id = "rk-abcdefghijkl";
  entry.imported = true;
  entry.idea.text = "sort/8";
  entry.idea.scope.metric = "ms";
  const std::string page = entry_page(entry, {});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("device")), Not(HasSubstr("model")),
                          Not(HasSubstr("backend")), HasSubstr("workload      ms\n")));
  const ledger::Summary entries[] = {summary_of(entry)};
  EXPECT_THAT(list_table(entries).text(), HasSubstr("figures of sort/8\n"));
}

TEST(LedgerText, SendsNoControlCharacters) {
  ledger::Entry entry = lost_entry();
  entry.idea.text = entry.idea.scope.arm_value = "echo one\necho \033[31mtwo";
  entry.idea.model_name = "a\nb";
  entry.notes.push_back({"2026-10-01T00:00:00Z", "bob", "\033[2Jgone"});
  const ledger::Summary entries[] = {summary_of(entry)};
  const std::string list = list_table(entries).text();
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 3);
  EXPECT_THAT(list, HasSubstr("row -> echo one echo \\x1b[31mtwo\n"));
  const std::string page = entry_page(entry, {});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("\033")), HasSubstr("idea          echo one echo"),
                          HasSubstr("bob: \\x1b[2Jgone")));
}

TEST(LedgerText, ListsALineAnEntry) {
  const ledger::Entry entry = lost_entry();
  const ledger::Summary entries[] = {summary_of(entry)};
  EXPECT_THAT(list_table(entries).text(),
              HasSubstr("rk-abcdefghijkl  2026-09-14  LOST      -3.9%  big.gguf  "
                        "prefill.tile_order row -> band8\n"));
}

}  // namespace
}  // namespace reckon::cli
