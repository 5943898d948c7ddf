#include "ledger/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon::ledger {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Summary entry(const std::string& id, const std::string& superseded_by = "",
              const std::string& lever_entry = "") {
  Summary summary;
  summary.id = id;
  summary.idea = "idea of " + id;
  summary.superseded_by = superseded_by;
  summary.lever_entry = lever_entry;
  return summary;
}

std::vector<std::string> ids(const std::vector<Summary>& entries) {
  std::vector<std::string> found;
  for (const Summary& one : entries) found.push_back(one.id);
  return found;
}

TEST(Chains, GoBothWaysOverOthers) {
  const Chains chains({entry("a", "c"), entry("b", "c"), entry("c", "d"), entry("d"), entry("e")});
  EXPECT_THAT(ids(chains.of("a").superseded_by), ElementsAre("c", "d"));
  EXPECT_EQ(chains.of("a").superseded_by[1].idea, "idea of d");
  EXPECT_THAT(ids(chains.of("d").supersedes), ElementsAre("a", "b", "c")) << "oldest first";
  EXPECT_THAT(ids(chains.of("c").supersedes), ElementsAre("a", "b"));
  EXPECT_THAT(chains.of("e").superseded_by, IsEmpty());
  EXPECT_THAT(chains.of("e").supersedes, IsEmpty());
}

TEST(Chains, KnowWhoseLeverWasPulled) {
  const Chains chains({entry("a", "", "c"), entry("b", "", "c"), entry("c")});
  EXPECT_THAT(ids(chains.of("c").lever_of), ElementsAre("a", "b"));
  EXPECT_THAT(chains.of("a").lever_of, IsEmpty());
}

TEST(Chains, NameWhatTheLedgerLacks) {
  const Chains chains({entry("a", "gone", "gone")});
  EXPECT_THAT(ids(chains.of("a").superseded_by), ElementsAre("gone"));
  EXPECT_EQ(chains.of("a").superseded_by[0].idea, "");
  EXPECT_THAT(ids(chains.of("gone").supersedes), ElementsAre("a"));
  EXPECT_THAT(chains.of("nobody").superseded_by, IsEmpty());
}

// Two clones may each supersede one entry by the other; merged, that is a ring.
TEST(Chains, EndAtRings) {
  const Chains chains({entry("a", "b"), entry("b", "c"), entry("c", "a"), entry("d", "d")});
  EXPECT_THAT(ids(chains.of("a").superseded_by), ElementsAre("b", "c"));
  EXPECT_THAT(ids(chains.of("a").supersedes), ElementsAre("b", "c"));
  EXPECT_THAT(chains.of("d").superseded_by, IsEmpty());
}

}  // namespace
}  // namespace reckon::ledger
