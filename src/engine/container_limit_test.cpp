#include "engine/container_limit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/test_files.h"

namespace reckon::engine {
namespace {

// A mount of control groups made of plain files.
class Mount {
 public:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(folder_.path() + "/" + file).parent_path());
    folder_.write(file, text);
  }
  [[nodiscard]] std::optional<uint64_t> left(const std::string& membership) const {
    return container_memory_left(folder_.path(), membership);
  }

 private:
  TestFolder folder_;
};

TEST(ContainerLimit, Version2CountsCacheThatCanBeDroppedAsLeft) {
  Mount mount;
  mount.write("app/memory.max", "1000\n");
  mount.write("app/memory.current", "700\n");
  EXPECT_EQ(mount.left("0::/app\n"), 300U);
  mount.write("app/memory.stat", "anon 100\nfile 600\ninactive_file 250\nactive_file 350\n");
  EXPECT_EQ(mount.left("0::/app\n"), 550U);
}

TEST(ContainerLimit, TakesTheTightestGroupOnTheWayUp) {
  Mount mount;
  mount.write("a/b/memory.max", "max\n");
  mount.write("a/b/memory.current", "10\n");
  mount.write("a/memory.max", "500\n");
  mount.write("a/memory.current", "100\n");
  mount.write("memory.max", "450\n");
  mount.write("memory.current", "200\n");
  EXPECT_EQ(mount.left("0::/a/b\n"), 250U);
}

TEST(ContainerLimit, InsideAContainerTheOwnGroupIsTheMount) {
  Mount mount;
  mount.write("memory.max", "4096\n");
  mount.write("memory.current", "96\n");
  EXPECT_EQ(mount.left("0::/\n"), 4000U);
  // The host's path, not visible here, is skipped.
  EXPECT_EQ(mount.left("0::/system.slice/unseen\n"), 4000U);
}

TEST(ContainerLimit, Version1) {
  Mount mount;
  mount.write("memory/app/memory.limit_in_bytes", "2000\n");
  mount.write("memory/app/memory.usage_in_bytes", "900\n");
  mount.write("memory/app/memory.stat", "cache 5\ninactive_file 1\ntotal_inactive_file 400\n");
  mount.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(mount.left("5:cpu,cpuacct:/app\n4:memory:/app\n0::/x\n"), 1500U);
}

TEST(ContainerLimit, NothingWhereNoGroupHasALimit) {
  Mount mount;
  EXPECT_EQ(mount.left("0::/app\n"), std::nullopt);
  mount.write("app/memory.max", "max\n");
  EXPECT_EQ(mount.left("0::/app\n"), std::nullopt);
  EXPECT_EQ(mount.left(""), std::nullopt);
  EXPECT_EQ(mount.left("nonsense\n:::\n"), std::nullopt);
}

TEST(ContainerLimit, UsageOverTheLimitLeavesNothing) {
  Mount mount;
  mount.write("memory.max", "100\n");
  mount.write("memory.current", "180\n");
  EXPECT_EQ(mount.left("0::/\n"), 0U);
}

}  // namespace
}  // namespace reckon::engine
