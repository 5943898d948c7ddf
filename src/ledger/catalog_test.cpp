// The index finds what reading every line finds: for a ledger as it grows, and whatever happens to
// its files or to the index.
#include "ledger/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "ledger/catalog_testing.h"
#include "ledger/open.h"
#include "ledger/synthetic_testing.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CatalogTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const fs::path index_ = folder_.path() / ".reckon-index" / "index.sqlite";
  const std::unique_ptr<Store> store_ = open_store(folder_.path().string()).value();

  void append(std::span<const Event> events) { ASSERT_TRUE(store_->append(events).ok()); }
  void append(const Event& event) { append({&event, 1}); }

  void expect_equal_answers(const std::vector<Scope>& scopes) const {
    test::expect_equal_answers(*store_, scopes);
    ASSERT_TRUE(fs::exists(index_));
  }
};

TEST_F(CatalogTest, AnswersAsTheLinesDoWhileTheLedgerGrows) {
  const std::vector<Event> events = test::synthetic_events(300, 1, 5);
  const std::vector<Scope> scopes = test::some_scopes(events);
  const size_t step = events.size() / 7;
  for (size_t from = 0; from < events.size(); from += step) {
    append(std::span(events).subspan(from, std::min(step, events.size() - from)));
    expect_equal_answers(scopes);
  }
  fs::remove_all(index_.parent_path());
  expect_equal_answers(scopes);
}

TEST_F(CatalogTest, AnEmptyOrAbsentLedgerGetsNoIndex) {
  EXPECT_THAT(open_catalog(*store_).value()->list().value(), IsEmpty());
  EXPECT_FALSE(fs::exists(index_));
  fs::remove_all(folder_.path());
  EXPECT_THAT(open_catalog(*store_).value()->list().value(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_.path()));
}

TEST_F(CatalogTest, GitDoesNotSeeTheIndex) {
  append(test::idea(test::expert_tile_scope()));
  ASSERT_TRUE(open_catalog(*store_).ok());
  std::ifstream in(index_.parent_path() / ".gitignore");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "*");
}

TEST_F(CatalogTest, ResolvesPrefixesAsTheLinesDo) {
  append(test::synthetic_events(200, 2));
  const auto indexed = open_catalog(*store_).value();
  const auto folded = open_catalog_without_index(*store_).value();
  for (const char* prefix : {"rk-", "abc", "zzzz", "rk-aaaaaaaaaaaa", "", "%", "rk-a~~~"}) {
    EXPECT_EQ(indexed->entry(prefix).error().message, folded->entry(prefix).error().message);
    EXPECT_EQ(indexed->entry(prefix).error().kind, ErrorKind::kUsage);
  }
}

// Whatever is done to the files of a ledger by hand, by git or by a crash.
class FilesTest : public CatalogTest {
 protected:
  const std::vector<Event> events_ = test::synthetic_events(40, 3, 3);
  const std::vector<Scope> scopes_ = test::some_scopes(events_);

  void SetUp() override {
    append(events_);
    expect_equal_answers(scopes_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
};

TEST_F(FilesTest, AChangedValueOfTheSameLength) {
  const fs::path file = files()[1];
  std::string text = content(file);
  text.replace(text.find("\"unit\":\"tok/s\""), 14, "\"unit\":\"tok/h\"");
  write(file, text);
  expect_equal_answers(scopes_);
  EXPECT_THAT(open_catalog(*store_).value()->warnings(),
              testing::Contains(HasSubstr("checksum mismatch")));
}

TEST_F(FilesTest, AFileThatIsGoneOrCutShort) {
  fs::remove(files()[0]);
  expect_equal_answers(scopes_);
  const std::string text = content(files()[0]);
  write(files()[0], text.substr(0, text.size() / 2));
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, ATornLineThatTheNextAppendSetsAside) {
  const fs::path file = files()[2];
  const std::string text = content(file);
  write(file, text + text.substr(0, 100));
  expect_equal_answers(scopes_);
  const Event event = parse_event_line(text.substr(0, text.find('\n')), "").value();
  append(test::idea(test::expert_tile_scope(), event.writer, event.time));
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, ALastLineWithoutItsNewline) {
  const fs::path file = files()[0];
  const std::string text = content(file);
  write(file, text.substr(0, text.size() - 1));
  expect_equal_answers(scopes_);
  write(file, text + "\r\n" + text.substr(0, text.find('\n')) + "\r\n");
  expect_equal_answers(scopes_);
  write(file, text.substr(0, text.size() - 1) + "x");
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, LinesInAnOlderFileOfAWriter) {
  append(test::idea(test::expert_tile_scope(), "writer-1", "2030-01-01T00:00:00Z"));
  expect_equal_answers(scopes_);
  append(test::idea(test::expert_tile_scope(), "writer-1", "2020-01-01T00:00:00Z"));
  append(test::idea(test::expert_tile_scope(), "writer-1", "2029-12-01T00:00:00Z"));
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, ARoundThatTwoEntriesClaim) {
  Scope scope = test::expert_tile_scope();
  const Event first = test::idea(scope, "ann", test::at(0));
  const Event second = test::idea(scope, "bob", test::at(1));
  append(first);
  append(second);
  append(test::measured(second.entry, "same-round", 0.2, test::at(5)));
  expect_equal_answers({scope});
  append(test::measured(first.entry, "same-round", 0.1, test::at(3)));
  expect_equal_answers({scope});
  EXPECT_THAT(open_catalog(*store_).value()->warnings(),
              ElementsAre(HasSubstr("round same-round is already counted in ")));
}

TEST_F(FilesTest, EventsWhoseEntryComesLater) {
  const Event idea = test::idea(test::expert_tile_scope());
  append(test::measured(idea.entry, "r1", 0.1));
  expect_equal_answers(scopes_);
  append(idea);
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, ADamagedIndexIsMadeAnew) {
  for (const std::string& damage : {std::string("not a database"), std::string(4096, '\0')}) {
    write(index_, damage);
    expect_equal_answers(scopes_);
  }
  std::string text = content(index_);
  ASSERT_GT(text.size(), 20000U);
  for (size_t i = 9000; i < 16000; ++i) text[i] = 'x';
  write(index_, text);
  append(test::idea(test::expert_tile_scope()));
  expect_equal_answers(scopes_);
}

TEST_F(FilesTest, TheLinesAreBelievedWhereTheIndexIsOpenAlready) {
  const auto indexed = open_catalog(*store_).value();
  const std::string id = indexed->list().value()[0].id;
  for (const fs::path& file : files()) write(file, "");
  EXPECT_FALSE(indexed->entry(id).ok());
}

TEST_F(FilesTest, AReadOnlyLedgerIsReadWithoutAnIndex) {
  fs::remove_all(index_.parent_path());
  write(index_.parent_path(), "in the way");
  const auto catalog = open_catalog(*store_).value();
  EXPECT_EQ(catalog->list().value(), open_catalog_without_index(*store_).value()->list().value());
}

// Readers and writers at once: each reader sees every entry that was there when it began, once.
TEST_F(CatalogTest, ManyProcessesAtOnce) {
  constexpr int kProcesses = 4;
  constexpr size_t kEach = 25;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool ok = true;
      test::SyntheticLedger source(static_cast<uint64_t>(child) + 10);
      for (size_t i = 1; i <= kEach && ok; ++i) {
        ok = store_->append(source.next()).ok();
        const auto catalog = open_catalog(*store_);
        ok = ok && catalog.ok() && (*catalog)->list().ok() && (*catalog)->list()->size() >= i &&
             (*catalog)->warnings().empty();
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(open_catalog(*store_).value()->list().value().size(), kProcesses * kEach);
  expect_equal_answers({});
}

}  // namespace
}  // namespace reckon::ledger
