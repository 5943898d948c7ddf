#include "ledger/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ledger/fold.h"
#include "ledger/open.h"
#include "ledger/synthetic_testing.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Place {
  test::TemporaryFolder folder;
  std::unique_ptr<Store> store = open_store((folder.path() / "ledger").string()).value();

  void append(const std::vector<Event>& events) const { EXPECT_TRUE(store->append(events).ok()); }
  std::vector<Event> events() const { return store->read().value().events; }
};

TEST(Merge, IsTheUnionOfBothInEitherDirection) {
  const Place ann;
  const Place bob;
  const std::vector<Event> both = test::synthetic_events(10, 1);
  ann.append(both);
  bob.append(both);
  ann.append(test::synthetic_events(20, 2));
  bob.append(test::synthetic_events(30, 3));
  const size_t of_ann = ann.events().size();
  const size_t of_bob = bob.events().size();

  const MergeReport report = merge(*ann.store, *bob.store).value();
  EXPECT_EQ(report.known, both.size());
  EXPECT_EQ(report.added, of_bob - both.size());
  EXPECT_EQ(ann.events().size(), of_ann + of_bob - both.size());
  EXPECT_EQ(merge(*ann.store, *bob.store).value().added, 0U);
  EXPECT_EQ(merge(*bob.store, *ann.store).value().added, of_ann - both.size());
  EXPECT_EQ(fold(ann.events()).entries.size(), 60U);
  EXPECT_EQ(fold(bob.events()).entries.size(), 60U);
  EXPECT_TRUE(ann.store->verify().value().ok());
}

TEST(Merge, IntoAnAbsentLedgerIsACopy) {
  const Place ann;
  const Place empty;
  ann.append(test::synthetic_events(5, 1));
  EXPECT_EQ(merge(*empty.store, *ann.store).value().added, ann.events().size());
  EXPECT_EQ(empty.events(), ann.events());
}

TEST(Merge, SaysWhatItLeftOut) {
  const Place ann;
  const Place bob;
  bob.append({test::idea(test::expert_tile_scope())});
  std::ofstream(bob.folder.path() / "ledger" / "ann-2026-09.jsonl", std::ios::app) << "{}\n";
  const MergeReport report = merge(*ann.store, *bob.store).value();
  EXPECT_EQ(report.added, 1U);
  EXPECT_THAT(report.left_out, ElementsAre(HasSubstr("ann-2026-09.jsonl:2: ")));
  EXPECT_THAT(report.warnings, IsEmpty());
}

// Two clones append and are merged by git itself, once by writers of their own and once by the same
// one: no conflict, nothing lost.
TEST(Merge, GitMergesTwoClones) {
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string();
  const auto git = [&](const std::string& where, const std::string& words) {
    const std::string command = "git -C '" + root + "/" + where +
                                "' -c user.name=test -c user.email=test@localhost " + words +
                                " >'" + root + "/git.log' 2>&1";
    return std::system(command.c_str()) == 0;
  };
  if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no git here";
  const auto append = [&](const std::string& clone, const Event& event) {
    EXPECT_TRUE(open_store(root + "/" + clone + "/ledger").value()->append({&event, 1}).ok());
    EXPECT_TRUE(git(clone, "add -A") && git(clone, "commit -q -m more"));
  };
  std::filesystem::create_directory(folder.path() / "a");
  ASSERT_TRUE(git("a", "init -q -b main"));
  append("a", test::idea(test::expert_tile_scope(), "ann", test::at(0)));
  ASSERT_TRUE(git(".", "clone -q a b"));
  for (int i = 1; i <= 3; ++i) {
    Scope scope = test::expert_tile_scope();
    scope.chunk = i;
    append("a", test::idea(scope, "ann", test::at(i)));
    append("b", test::idea(scope, "bob", test::at(i)));
    scope.rows = i;
    append("b", test::idea(scope, "ann", test::at(i)));
  }
  ASSERT_TRUE(git("b", "pull -q --no-rebase --no-edit origin main"));
  const auto merged = open_store(root + "/b/ledger").value();
  EXPECT_EQ(merged->read().value().events.size(), 10U);
  EXPECT_THAT(merged->read().value().warnings, IsEmpty());
  EXPECT_TRUE(merged->verify().value().ok());
}

}  // namespace
}  // namespace reckon::ledger
