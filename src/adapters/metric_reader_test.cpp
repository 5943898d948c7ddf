#include "adapters/metric_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/test_data.h"

namespace reckon::adapters {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<double> read(const std::string& how, const std::string& output,
                    const std::string& errors = "") {
  Result<MetricReader> reader = MetricReader::parse(how);
  if (!reader.ok()) return reader.error();
  return reader->read(output, errors);
}

// The number, or -1 and a complaint.
double number(const std::string& how, const std::string& output, const std::string& errors = "") {
  const Result<double> value = read(how, output, errors);
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message);
  return value.ok() ? *value : -1;
}

std::string error(const std::string& how, const std::string& output) {
  const Result<double> value = read(how, output);
  return value.ok() ? "" : value.error().message;
}

TEST(MetricReader, FollowsJsonPaths) {
  const std::string text = R"({"a": {"b": [1, {"c": 2.5}, -3]}, "two words": 4, "tok_s": 99})";
  EXPECT_EQ(number("json:$.tok_s", text), 99);
  EXPECT_EQ(number("json:$.a.b[0]", text), 1);
  EXPECT_EQ(number("json:$.a.b[1].c", text), 2.5);
  EXPECT_EQ(number("json:$.a.b[-1]", text), -3);
  EXPECT_EQ(number("json:$[\"two words\"]", text), 4);
  EXPECT_EQ(number("json:$[\"a\"].b[1][\"c\"]", text), 2.5);
}

TEST(MetricReader, ReadsAWholeDocumentOrItsLastLine) {
  EXPECT_EQ(number("json:$[1].x", "[{\"x\": 1},\n {\"x\": 2}]\n"), 2);
  EXPECT_EQ(number("json:$.x", "{\"x\": 1}\n{\"x\": 2}\n"), 2);
  EXPECT_EQ(number("json:$.x", "loading…\n{\"x\": 1}\n{\"x\": 2}\ndone in 3 s\n7\n"), 2);
  EXPECT_EQ(number("json:$.x", "{\"x\": 1}\r\n"), 1);
}

TEST(MetricReader, SaysWhatTheDocumentHasInstead) {
  EXPECT_THAT(error("json:$.a.tok_s", R"({"a": {"tps": 1}})"),
              AllOf(HasSubstr("no $.a.tok_s"), HasSubstr("$.a is an object with tps")));
  EXPECT_THAT(error("json:$.a[3]", R"({"a": [1]})"), HasSubstr("$.a is a list of 1"));
  EXPECT_THAT(error("json:$.a[-2]", R"({"a": [1]})"), HasSubstr("$.a is a list of 1"));
  EXPECT_THAT(error("json:$.a", R"({"a": "12"})"), HasSubstr("no number but a text"));
  EXPECT_THAT(error("json:$.a.b", R"({"a": 1})"), HasSubstr("$.a is number"));
  EXPECT_THAT(error("json:$.x", "12 tokens\n"), HasSubstr("it begins '12 tokens"));
  EXPECT_THAT(error("json:$.x", ""), HasSubstr("is empty"));
  EXPECT_NE(error("json:$.x", "{\"x\": 1e999}"), "");
}

TEST(MetricReader, RefusesPathsThatMakeNoSense) {
  for (const char* path : {"", "tok_s", "$tok_s", "$.", "$..a", "$.a[", "$.a[x]", "$.a[1.5]",
                           "$.a[\"b\"", "$.a b", "$.*", "$.a[]"}) {
    const Result<MetricReader> reader = MetricReader::parse(std::string("json:") + path);
    ASSERT_FALSE(reader.ok()) << path;
    EXPECT_EQ(reader.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(reader.error().message, HasSubstr("expected $.name")) << path;
  }
  EXPECT_FALSE(MetricReader::parse("jq:.x").ok());
}

TEST(MetricReader, FindsTheLastLineThatMatches) {
  const std::string text = "run 1: 10.5 tok/s\nrun 2: 11.25 tok/s\nbye\n";
  EXPECT_EQ(number("regex:([0-9.]+) tok/s", text), 11.25);
  EXPECT_EQ(number("regex:^run 1: ([0-9.]+)", text), 10.5);
  EXPECT_EQ(number("regex:(?<=run 2: )[0-9.]+", text), 11.25);
  EXPECT_EQ(number("regex:took(.*)ms", "took  +1.5e3 ms\r\n"), 1500);
  EXPECT_EQ(number("regex:([0-9.]+) s$", "nothing\n", "real\n2.5 s\n"), 2.5);
}

TEST(MetricReader, SaysWhatAnExpressionFoundInstead) {
  EXPECT_THAT(error("regex:([0-9]+) tok", "12.5 t/s\n"),
              AllOf(HasSubstr("matches no line"), HasSubstr("begins '12.5 t/s")));
  EXPECT_THAT(error("regex:is (.*)", "speed is fast\n"), HasSubstr("found no number but 'fast'"));
  EXPECT_THAT(error("regex:x(1)?", "x\n"), HasSubstr("found no number"));
  EXPECT_THAT(error("regex:((", "x"), HasSubstr("at character"));
}

TEST(MetricReader, GivesUpOnAnExpressionThatTakesForEver) {
  const std::string text(40000, 'a');
  EXPECT_THAT(error("regex:^(a+)+$", text + "b"), HasSubstr("gave up"));
}

// What it wrote of a prompt and of generation, which comes last.
TEST(MetricReader, ReadsLlamaBench) {
  std::ifstream file(golden_path("exchange/llama-bench.jsonl"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(number("json:$.avg_ts", text), 0.549639);
  EXPECT_EQ(number("json:$.samples_ts[0]", text), 0.0788573);
  const std::string prompt = text.substr(0, text.find('\n') + 1);
  EXPECT_EQ(number("json:$.avg_ts", prompt), 26.178615);
}

}  // namespace
}  // namespace reckon::adapters
