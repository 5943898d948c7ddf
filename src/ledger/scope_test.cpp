#include "ledger/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::expert_tile_scope;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Scope, RoundTripsThroughJson) {
  Scope scope = expert_tile_scope();
  scope.memory_limit = "plan+33554432";
  EXPECT_EQ(scope_from_json(scope_to_json(scope)).value(), scope);
  EXPECT_EQ(scope_from_json(scope_to_json(Scope())).value(), Scope());
  EXPECT_EQ(scope_from_json(nlohmann::json::object()).value(), Scope());
}

// Changes each leaf of the canonical form in turn.
TEST(Scope, EveryFieldCounts) {
  const Scope scope = expert_tile_scope();
  const nlohmann::json flat = scope_to_json(scope).flatten();
  EXPECT_GE(flat.size(), 23U);
  for (const auto& [path, value] : flat.items()) {
    if (value.is_null()) continue;  // how flatten() shows an empty object
    nlohmann::json changed = scope_to_json(scope);
    changed[nlohmann::json::json_pointer(path)] =
        value.is_string() ? nlohmann::json("other") : nlohmann::json(77);
    const Scope other = scope_from_json(changed).value();
    EXPECT_NE(other, scope) << path;
    EXPECT_NE(scope_id(other), scope_id(scope)) << path;
    EXPECT_EQ(differences(scope, other).size(), 1U) << path;
  }
}

TEST(Scope, FieldsOfNewerVersionsCountAndAreKept) {
  nlohmann::json json = scope_to_json(expert_tile_scope());
  json["phase_of_moon"] = "full";
  json["device"]["nvlink"] = 4;
  const Scope scope = scope_from_json(json).value();
  EXPECT_NE(scope, expert_tile_scope());
  EXPECT_NE(scope_id(scope), scope_id(expert_tile_scope()));
  EXPECT_EQ(scope_to_json(scope), json);
  EXPECT_THAT(differences(expert_tile_scope(), scope),
              ElementsAre(ScopeDifference{"device.nvlink", "", "4"},
                          ScopeDifference{"phase_of_moon", "", "full"}));
}

TEST(Scope, DifferencesNameFieldsAndBothValues) {
  Scope other = expert_tile_scope();
  other.device.units = 114;
  other.chunk = 512;
  other.arm_switches["prefill.tile"] = "tall";
  EXPECT_THAT(differences(expert_tile_scope(), other),
              ElementsAre(ScopeDifference{"arm_switches.prefill.tile", "", "tall"},
                          ScopeDifference{"chunk", "2048", "512"},
                          ScopeDifference{"device.units", "132", "114"}));
  EXPECT_TRUE(differences(other, other).empty());
}

TEST(Scope, IdIsStable) {
  EXPECT_EQ(scope_id(expert_tile_scope()).size(), 16U);
  EXPECT_EQ(scope_id(expert_tile_scope()), scope_id(expert_tile_scope()));
}

TEST(Scope, ErrorsNameTheField) {
  const auto error = [](const nlohmann::json& json) {
    return scope_from_json(json).error().message;
  };
  EXPECT_THAT(error({{"chunk", "big"}}), HasSubstr("scope.chunk is a string: expected a 64-bit"));
  EXPECT_THAT(error({{"chunk", 2.5}}), HasSubstr("scope.chunk"));
  EXPECT_THAT(error({{"chunk", 18446744073709551615ULL}}), HasSubstr("scope.chunk"));
  EXPECT_THAT(error({{"device", 3}}), HasSubstr("scope.device is a number: expected an object"));
  EXPECT_THAT(error({{"device", {{"isa", 90}}}}), HasSubstr("scope.device.isa"));
  EXPECT_THAT(error({{"base_switches", {{"a", 1}}}}), HasSubstr("scope.base_switches.a"));
  EXPECT_THAT(error(3), HasSubstr("scope is a number"));
}

}  // namespace
}  // namespace reckon::ledger
