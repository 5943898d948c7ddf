#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace reckon {
namespace {

// The published XXH3 values of the empty input (seed 0).
TEST(Hash, MatchesTheReferenceValues) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2U);
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, PiecesHashAsTheirConcatenation) {
  const std::string text(5000, 'x');
  const std::string_view view = text;
  EXPECT_EQ(Hasher().add(view.substr(0, 17)).add(view.substr(17)).hex(), hash_hex(text));
}

TEST(Hash, FieldsDoNotRunTogether) {
  EXPECT_NE(Hasher().add_field("ab").add_field("c").hex(),
            Hasher().add_field("a").add_field("bc").hex());
  EXPECT_EQ(Hasher().add("ab").add("c").hex(), Hasher().add("a").add("bc").hex());
}

TEST(Hash, ShorterBase32IsAPrefix) {
  Hasher hasher;
  hasher.add("ledger");
  const std::string all = hasher.base32(25);
  EXPECT_EQ(all.size(), 25U);
  EXPECT_EQ(hasher.base32(8), all.substr(0, 8));
  EXPECT_EQ(hasher.base32(0), "");
  EXPECT_EQ(all.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567"), std::string::npos);
}

TEST(Hash, NearInputsDiffer) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(hash64(std::to_string(i)));
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace reckon
