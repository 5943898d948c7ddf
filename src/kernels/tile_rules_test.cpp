#include "kernels/tile_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kFile = R"(name: cpu-test
date: 2026-11-30
ledger: unmeasured
when: {backend: cpu, device.vendor: GenuineIntel, device.isa: amx, device.units: 2}
chunks: [128, 512]
shapes:
  - {op: matmul, type: q4_0, n: 576, k: 576}
  - {op: matmul, type: q4_0, n: 1536, k: 576}
rules:
  - {op: matmul, type: q4_0, n: 1024.., k: 1.., rows: 512.., tile: wide}
  - {op: matmul, type: any, n: 576, k: 1.., rows: 1..511, tile: tall}
)";

OpCall call(int64_t rows, int64_t n, int64_t k, DType type = DType::kQ4_0) {
  OpCall call;
  call.op = Op::kMatmul;
  call.weight_type = type;
  call.rows = rows;
  call.n = n;
  call.k = k;
  return call;
}

TileRules parsed(const std::string& text) {
  const Result<TileRules> rules = parse_tile_rules(text, "rules/x.yaml");
  EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : rules.error().message);
  return rules.ok() ? *rules : TileRules{};
}

// kFile with one thing put in the place of another.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kFile;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const Result<TileRules> rules = parse_tile_rules(text, "rules/x.yaml");
  EXPECT_FALSE(rules.ok()) << text;
  if (rules.ok()) return "";
  EXPECT_EQ(rules.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(rules.error().message.find('\n'), std::string::npos);
  return rules.error().message;
}

TEST(TileRules, TheFirstRuleThatFitsDecides) {
  const TileRules rules = parsed(kFile);
  EXPECT_EQ(rules.name, "cpu-test");
  EXPECT_EQ(rules.find(call(512, 1536, 576)), 1u);
  EXPECT_EQ(rules.find(call(2048, 100000, 64)), 1u);
  EXPECT_EQ(rules.find(call(511, 1536, 576)), 0u);
  EXPECT_EQ(rules.find(call(512, 1536, 576, DType::kQ6_K)), 0u);
  EXPECT_EQ(rules.find(call(1, 576, 4096, DType::kQ6_K)), 2u);
  EXPECT_EQ(rules.find(call(512, 576, 576)), 0u);
  OpCall group = call(512, 1536, 576);
  group.op = Op::kMatmulGroup;
  EXPECT_EQ(rules.find(group), 0u);
}

TEST(TileRules, SaysWhatIsOutsideItsConditions) {
  const TileRules rules = parsed(kFile);
  const TileDevice here = rules.device;
  EXPECT_EQ(rules.outside(call(512, 1536, 576), 512, here), "");
  EXPECT_EQ(rules.outside(call(37, 700, 576), 128, here), "");  // a tail; n between tuned ones
  EXPECT_EQ(rules.outside(call(512, 1536, 576), 2048, here), "chunk 2048 (tuned at 128, 512)");
  EXPECT_EQ(rules.outside(call(512, 192, 1024), 512, here),
            "n=192 (tuned at 576 to 1536), k=1024 (tuned at 576)");
  EXPECT_EQ(rules.outside(call(512, 576, 576, DType::kQ6_K), 512, here),
            "matmul of q6_k (not tuned)");
  TileDevice other = here;
  other.units = 8;
  EXPECT_EQ(rules.outside(call(512, 576, 576), 512, other),
            "on cpu GenuineIntel amx of 8 units (tuned on cpu GenuineIntel amx of 2 units)");
}

TEST(TileRules, ReadsWhatItWrites) {
  TileRules rules = parsed(kFile);
  const std::string text = tile_rules_text(rules, "made by\n  hand");
  EXPECT_THAT(text, StartsWith("# made by\n#   hand\nname: cpu-test\n"));
  const TileRules again = parsed(text);
  EXPECT_EQ(again.rules, rules.rules);
  EXPECT_EQ(again.shapes, rules.shapes);
  EXPECT_EQ(again.chunks, rules.chunks);
  EXPECT_EQ(again.device, rules.device);
  EXPECT_EQ(again.ledger, rules.ledger);
  EXPECT_NE(again.content_hash, rules.content_hash);
  rules.rules.clear();
  EXPECT_TRUE(parsed(tile_rules_text(rules, "none")).rules.empty());
}

TEST(TileRules, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(error_of(changed("tile: wide", "tile: tal")),
            "rules/x.yaml:10: rule: 'tile' is 'tal': expected tall or wide or square");
  EXPECT_EQ(error_of(changed("rows: 512..,", "")), "rules/x.yaml:10: rule: 'rows' is missing");
  EXPECT_EQ(error_of(changed("rows: 512..,", "row: 512..,")),
            "rules/x.yaml:10: rule: unknown key 'row'; did you mean 'rows'?");
  EXPECT_EQ(error_of(changed("1..511", "511..1")),
            "rules/x.yaml:11: rule: 'rows' is '511..1': expected a range of whole numbers from 1: "
            "512..2048, 512.. or 512");
  for (const char* range : {"0..5", "..5", "1...5", "1..5x", "[1, 5]", "-1..", "1e3", "''"}) {
    EXPECT_THAT(error_of(changed("1..511", range)), HasSubstr(":11: rule: 'rows' is ")) << range;
  }
  EXPECT_EQ(error_of(changed("op: matmul, type: any", "op: rope, type: any")),
            "rules/x.yaml:11: rule: 'op' is 'rope': expected matmul or matmul_group or "
            "matmul_swiglu");
  EXPECT_THAT(error_of(changed("type: q4_0, n: 576", "type: any, n: 576")),
              HasSubstr(":7: shape: 'type' is 'any': expected an element type"));
  EXPECT_THAT(error_of(changed("[128, 512]", "[]")), HasSubstr(":5: 'chunks' is a list: expected"));
  EXPECT_THAT(error_of(changed("[128, 512]", "[128, x]")),
              HasSubstr(":5: 'chunks' is 'x': expected a whole number from 1"));
  EXPECT_THAT(error_of(changed("device.units: 2", "device.unit: 2")),
              HasSubstr(":4: when: unknown key 'device.unit'; did you mean 'device.units'?"));
  EXPECT_THAT(error_of(changed("name: cpu-test", "name: two words")),
              HasSubstr(":1: 'name' is 'two words': expected one word"));
  EXPECT_THAT(error_of(changed("name: cpu-test\n", "")), HasSubstr("'name' is missing"));
  EXPECT_THAT(error_of("- a"), HasSubstr("rules/x.yaml:1: expected a map with name, date"));
  EXPECT_THAT(error_of(""), HasSubstr("rules/x.yaml:1: the file is empty"));
  EXPECT_THAT(error_of("a: [1"), StartsWith("rules/x.yaml:"));
}

TEST(TileRules, AFileIsReadOrTheErrorNamesIt) {
  const std::filesystem::path folder = ::testing::TempDir();
  const std::string path = (folder / "tile_rules_test.yaml").string();
  std::ofstream(path) << kFile;
  const auto loaded = load_tile_rules(path);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->path, path);
  EXPECT_EQ((*loaded)->content_hash, parsed(kFile).content_hash);
  std::remove(path.c_str());
  const auto missing = load_tile_rules(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, path + ": no such file");
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(load_tile_rules(folder.string()).ok());
}

TEST(TileRules, EveryShippedFileIsOfABackend) {
  for (const auto& rules : shipped_tile_rules()) {
    EXPECT_THAT(rules->name, StartsWith(rules->device.backend + "-"));
    EXPECT_EQ(shipped_tile_rules_for(rules->device), rules);
    TileDevice other = rules->device;
    other.vendor = "somebody else";
    EXPECT_NE(shipped_tile_rules_for(other), nullptr);
  }
  EXPECT_EQ(shipped_tile_rules_for({"none", "", "", 1}), nullptr);
}

}  // namespace
}  // namespace reckon::kernels
