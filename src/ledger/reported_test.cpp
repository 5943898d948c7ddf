#include "ledger/reported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/test_data.h"
#include "ledger/catalog.h"
#include "ledger/chain.h"
#include "ledger/open.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Signature kBy{"ann", test::at(0)};

// The folder `ledger/` of the project, which ships with entries that were reported elsewhere.
std::filesystem::path shipped() {
  return project_path("ledger");
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Reported, TheShippedEntriesAreThoseOfTheirFile) {
  const auto store = open_store(shipped().string()).value();
  EXPECT_TRUE(store->verify().value().ok());
  const ReadReport read = store->read().value();
  ASSERT_FALSE(read.events.empty());
  std::vector<Event> reported;
  for (const Event& event : read.events) {
    if (event.writer == "reported") reported.push_back(event);
  }
  const std::string time = reported.front().time;
  EXPECT_EQ(read_reported(content(shipped() / "reported-2026-09.yaml"), "reported.yaml",
                          {"reported", time})
                .value(),
            reported);
  for (const Entry& entry : fold(reported).entries) {
    EXPECT_TRUE(entry.imported);
    EXPECT_TRUE(entry.verdict && !entry.verdict->mechanism.empty());
    EXPECT_EQ(entry.idea.scope.device.units, 80);
  }
}

TEST(Reported, AnotherDeviceFindsThemNearWithWhatDiffers) {
  const Ledger ledger = fold(open_store(shipped().string()).value()->read().value().events);
  Query query;
  query.scope = test::expert_tile_scope();  // moe.expert_tile 32 -> 64 on an NVIDIA GPU
  const Consultation answer = consult(ledger.entries, query);
  EXPECT_FALSE(answer.block || answer.join);
  std::vector<std::string> texts;
  for (const NearFinding& near : answer.near) texts.push_back(near_text(near));
  EXPECT_EQ(texts.size(), 2U);
  EXPECT_THAT(texts, Contains(testing::AllOf(
                         HasSubstr("LOST -3.9% (949.4 / 951.9 -> 914.6 / 914.7 tok/s)"),
                         HasSubstr("imported on"), HasSubstr("device.vendor apple there"),
                         HasSubstr("device.units 80 there, 132 here"))));
}

TEST(Reported, TheirExactScopeNeverBlocks) {
  const Ledger ledger = fold(open_store(shipped().string()).value()->read().value().events);
  for (const Entry& entry : ledger.entries) {
    if (!entry.imported) continue;
    Query query;
    query.scope = entry.idea.scope;
    const Consultation answer = consult(ledger.entries, query);
    EXPECT_FALSE(answer.block || answer.join) << entry.idea.experiment;
    EXPECT_FALSE(answer.allowed.empty());
  }
}

TEST(Reported, LinksBecomeTheChain) {
  const Ledger ledger = fold(open_store(shipped().string()).value()->read().value().events);
  std::vector<Summary> all;
  std::string stream;
  for (const Entry& entry : ledger.entries) {
    all.push_back(summary_of(entry));
    if (entry.idea.experiment == "verify-stream") stream = entry.id;
  }
  const Chain chain = Chains(all).of(stream);
  EXPECT_EQ(chain.supersedes.size(), 2U);
  ASSERT_EQ(chain.lever_of.size(), 1U);
  EXPECT_EQ(chain.lever_of[0].verdict, Verdict::kVoid);
}

std::string file_with(const std::string& entry) {
  return "source: a paper\nentries:\n  - " + entry + "\n";
}

constexpr const char* kEntry =
    "{name: x, idea: y, model: m, switch: {key: k, base: a, arm: b}, metric: ms, better: lower, "
    "verdict: WON, base: [2], arm: [1]}";

TEST(Reported, ALowerIsBetterEffectIsAboveZero) {
  const std::vector<Event> events = read_reported(file_with(kEntry), "r.yaml", kBy).value();
  const Ledger ledger = fold(events);
  ASSERT_EQ(ledger.entries.size(), 1U);
  EXPECT_NEAR(*ledger.entries[0].verdict->numbers->effect, 1.0, 1e-12);
  EXPECT_EQ(ledger.entries[0].import_source, "a paper");
}

TEST(Reported, ErrorsNameTheLineAndTheKey) {
  const auto error = [](const std::string& text) {
    const auto read = read_reported(text, "r.yaml", kBy);
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error().message;
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string entry = kEntry;
    entry.replace(entry.find(from), from.size(), to);
    return file_with(entry);
  };
  EXPECT_THAT(error("entries: []"), HasSubstr("'source' is missing"));
  EXPECT_THAT(error("source: x"), HasSubstr("entries: expected a list"));
  EXPECT_THAT(error(changed("idea", "Idea")), HasSubstr("r.yaml:3: unknown key 'Idea'"));
  EXPECT_THAT(error(changed("idea: y,", "")), HasSubstr("'idea' is missing"));
  EXPECT_THAT(error(changed("WON", "MAYBE")), HasSubstr("is not a verdict"));
  EXPECT_THAT(error(changed("[2]", "[2, 3]")), HasSubstr("each round of both"));
  EXPECT_THAT(error(changed("[2]", "[0]")), HasSubstr("above zero"));
  EXPECT_THAT(error(changed("[2]", "[nan]")), HasSubstr("base: expected numbers"));
  EXPECT_THAT(error(changed("lower", "less")), HasSubstr("lower or higher"));
  EXPECT_THAT(error(changed("verdict", "links: {lever_entry: nobody}, verdict")),
              HasSubstr("no entry of this file is called 'nobody'"));
  EXPECT_THAT(error(file_with(kEntry) + "  - " + kEntry), HasSubstr("'x' stands twice"));
}

}  // namespace
}  // namespace reckon::ledger
