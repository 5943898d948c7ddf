#include "cli/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using kernels::BoundKind;

TEST(Roofline, RatesHaveThePrefixThatSuits) {
  EXPECT_EQ(format_rate(4.613e12, "byte/s"), "4.61 TB/s");
  EXPECT_EQ(format_rate(18.24e9, "byte/s"), "18.2 GB/s");
  EXPECT_EQ(format_rate(827e12, "op/s"), "827 Top/s");
  EXPECT_EQ(format_rate(1.274e15, "op/s"), "1.27 Pop/s");
  EXPECT_EQ(format_rate(5, "op/s"), "5.00 op/s");
}

TEST(Roofline, SharesAreOfTheHighestBoundOfEachKind) {
  const std::vector<kernels::Bound> bounds = {
      bound_of("read", BoundKind::kRead, {2000}, ""),
      bound_of("read_1_thread", BoundKind::kRead, {1000}, ""),
      bound_of("fma", BoundKind::kMultiply, {500}, ""),
      bound_of("dot", BoundKind::kMultiply, {4000}, "")};
  const Shares shares = shares_of({.bytes = 400, .operations = 1000}, 4, 10, bounds);
  EXPECT_DOUBLE_EQ(shares.bytes_per_token, 100);
  EXPECT_DOUBLE_EQ(shares.operations_per_token, 250);
  EXPECT_DOUBLE_EQ(shares.read, 0.5);
  EXPECT_DOUBLE_EQ(shares.multiply, 0.625);
  EXPECT_EQ(shares.multiply_bound, "dot");
}

bool well_formed(const nlohmann::json& bounds) {
  if (!bounds.is_array() || bounds.empty()) return false;
  for (const auto& bound : bounds) {
    const double value = bound.value("value", -1.0);
    if (!std::isfinite(value) || value <= 0 || bound.value("spread", -1.0) < 0) return false;
    for (const char* key : {"name", "kind", "unit", "detail"}) {
      if (bound.value(key, std::string()).empty()) return false;
    }
  }
  return true;
}

TEST(Roofline, BenchPrintsTheMachinesBounds) {
  Sandbox sandbox;
  const std::vector<std::string> words = {"bench", "--roofline", "--buffer", "1MiB", "-r", "1"};
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  const Finished json = sandbox.run(with_json);
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.json().value("backend", ""), "cpu");
  EXPECT_GE(json.json().value("n_threads", 0), 1);
  ASSERT_TRUE(json.json().contains("bounds")) << json.out;
  EXPECT_TRUE(well_formed(json.json()["bounds"])) << json.out;
  EXPECT_EQ(json.json()["bounds"][0]["name"], "read");

  const Finished text = sandbox.run(words);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(lines_of(text.out)[0].starts_with("bound")) << text.out;
}

TEST(Roofline, BenchOfAModelPrintsSharesOfThem) {
  Sandbox sandbox;
  const std::vector<std::string> words = {"bench", "-m",         tiny_model(), "-p",  "8",
                                          "-n",    "4",          "-r",         "1",   "--chunk",
                                          "4",     "--roofline", "--buffer",   "1MiB"};
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  const Finished json = sandbox.run(with_json);
  ASSERT_EQ(json.code, 0) << json.err;
  const nlohmann::json tests = json.json();
  ASSERT_EQ(tests.size(), 2U) << json.out;
  for (const auto& test : tests) {
    EXPECT_TRUE(well_formed(test["bounds"])) << test;
    for (const char* key :
         {"bytes_per_token", "operations_per_token", "read_share", "multiply_share"}) {
      EXPECT_TRUE(std::isfinite(test.value(key, -1.0)) && test.value(key, -1.0) > 0) << key;
    }
    EXPECT_FALSE(test.value("multiply_bound", "").empty());
  }
  // A token of a chunk shares the weights with three others.
  EXPECT_LT(tests[0]["bytes_per_token"], tests[1]["bytes_per_token"]);

  std::vector<std::string> with_csv = words;
  with_csv.insert(with_csv.end(), {"-o", "csv"});
  const Finished csv = sandbox.run(with_csv);
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_NE(lines_of(csv.out)[0].find("MB/tok,Mop/tok,share,of"), std::string::npos) << csv.out;
}

TEST(Roofline, RefusesWhatItCannotDo) {
  Sandbox sandbox;
  const Finished alone = sandbox.run({"bench", "--buffer", "1MiB"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(alone.one_error_line()) << alone.err;
  const Finished size = sandbox.run({"bench", "--roofline", "--buffer", "many"});
  EXPECT_EQ(size.code, 2);
  EXPECT_TRUE(size.one_error_line()) << size.err;
  const Finished backend = sandbox.run({"bench", "--roofline", "--backend", "abacus"});
  EXPECT_EQ(backend.code, 2);
  EXPECT_TRUE(backend.one_error_line()) << backend.err;
}

}  // namespace
}  // namespace reckon::cli
