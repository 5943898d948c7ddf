#include "ledger/locate.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

void touch(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "";
}

TEST(Locate, FindsTheNearestLedgerUpward) {
  const TemporaryFolder root;
  touch(root.path() / "ledger" / "ann-2026-09.jsonl");
  fs::create_directories(root.path() / "a" / "b");
  const LocateInputs inputs{root.path() / "a" / "b", "/data", "/home/ann"};
  EXPECT_EQ(locate_ledger(inputs).value(), (root.path() / "ledger").string());
  touch(root.path() / "a" / "ledger" / ".reckon-ledger");
  EXPECT_EQ(locate_ledger(inputs).value(), (root.path() / "a" / "ledger").string());
}

TEST(Locate, AFolderOfThatNameIsNotEnough) {
  const TemporaryFolder root;
  touch(root.path() / "ledger" / "event.h");
  touch(root.path() / "ledger" / "notes.jsonl");
  touch(root.path() / "ledger" / "ann-2026-9.jsonl");
  EXPECT_FALSE(holds_ledger(root.path() / "ledger"));
  EXPECT_EQ(locate_ledger({root.path(), "", "/home/ann"}).value(),
            "/home/ann/.local/share/reckon/ledger");
}

TEST(Locate, FallsBackAsXdgSays) {
  const TemporaryFolder root;
  EXPECT_EQ(locate_ledger({root.path(), "/data", "/home/ann"}).value(), "/data/reckon/ledger");
  EXPECT_EQ(locate_ledger({root.path(), "relative", "/home/ann"}).value(),
            "/home/ann/.local/share/reckon/ledger");
  EXPECT_FALSE(locate_ledger({root.path(), "", ""}).ok());
  EXPECT_EQ(locate_ledger({"", "/data", ""}).value(), "/data/reckon/ledger");
}

TEST(Locate, DefaultUsesTheEnvironment) {
  EXPECT_TRUE(default_ledger().ok());
}

}  // namespace
}  // namespace reckon::ledger
