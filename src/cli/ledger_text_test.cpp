#include "cli/ledger_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const std::string page = entry_page(lost_entry());
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
  EXPECT_THAT(entry_page(entry), AllOf(HasSubstr("superseded by rk-222222222222"),
                                       HasSubstr("note          2026-10-01 bob: seen again")));
  entry.imported = true;
  entry.import_source = "a paper";
  EXPECT_THAT(entry_page(entry), HasSubstr("reported by a paper, not measured here"));
}

TEST(LedgerText, ListsALineAnEntry) {
  const ledger::Entry entry = lost_entry();
  const ledger::Entry* const entries[] = {&entry};
  EXPECT_THAT(list_table(entries).text(),
              HasSubstr("rk-abcdefghijkl  2026-09-14  LOST      -3.9%  big.gguf  "
                        "prefill.tile_order row -> band8\n"));
}

}  // namespace
}  // namespace reckon::cli
