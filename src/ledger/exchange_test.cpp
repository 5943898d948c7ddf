#include "ledger/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/test_data.h"
#include "ledger/synthetic_testing.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Signature kBy{"ann", test::at(0)};

std::string golden(const std::string& name) {
  std::ifstream in(golden_path("exchange/" + name));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

// Read as the format that its content says it is.
std::vector<Series> read(const std::string& name) {
  const std::string text = golden(name);
  return recognise_format(text, name).value()->read(text, name).value();
}

TEST(Exchange, ReadsWhatHyperfineWrote) {
  const std::vector<Series> series = read("hyperfine.json");
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].name, "sleep 10 ms");
  EXPECT_EQ(series[0].unit, "s");
  ASSERT_EQ(series[0].samples.size(), 5U);
  EXPECT_DOUBLE_EQ(series[0].samples[0], 0.011318273);
  EXPECT_TRUE(series[0].details.contains("mean"));
}

TEST(Exchange, ReadsWhatGoogleBenchmarkWrote) {
  const std::vector<Series> series = read("google-benchmark.json");
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].name, "sum/1000");
  EXPECT_EQ(series[0].unit, "ns");
  EXPECT_EQ(series[0].samples.size(), 4U);  // the repetitions, not their mean and median
  EXPECT_GT(series[1].samples[0], series[0].samples[0]);
}

TEST(Exchange, ReadsWhatLlamaBenchWrote) {
  const std::vector<Series> series = read("llama-bench.jsonl");
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].name, "llama 256M Q4_1 pp16");
  EXPECT_EQ(series[1].name, "llama 256M Q4_1 tg4");
  EXPECT_EQ(series[1].unit, "tok/s");
  EXPECT_TRUE(series[1].higher_is_better);
  EXPECT_EQ(series[1].samples.size(), 3U);
  EXPECT_EQ(series[1].details["cpu_info"], "Intel(R) Xeon(R) Processor");
}

// From the specification of the format.
TEST(Exchange, ReadsGoBenchmarkText) {
  const std::string text =
      "commit: 7cd9055\ngoos: linux\ngoarch: amd64\nBenchmarkDecode/text=digits-8   \t100\t"
      "154125 ns/op\t  64.88 MB/s\t   40418 B/op\nBenchmarkDecode/text=digits-8 100 160000 ns/op\n"
      "PASS\nBenchmarking is fun\nok  \tcompress\t1.2s\n";
  const FileFormat* format = recognise_format(text, "go.txt").value();
  EXPECT_EQ(format->name, "go");
  const std::vector<Series> series = format->read(text, "go.txt").value();
  ASSERT_EQ(series.size(), 3U);
  EXPECT_EQ(series[0].name, "Decode/text=digits-8");
  EXPECT_THAT(series[0].samples, ElementsAre(154125, 160000));
  EXPECT_FALSE(series[0].higher_is_better);
  EXPECT_TRUE(series[1].higher_is_better);
  EXPECT_EQ(series[2].unit, "B/op");
  EXPECT_EQ(series[0].details["goos"], "linux");
}

TEST(Exchange, RefusesOtherFiles) {
  for (const char* text :
       {"", "{}", "[]", "nonsense", R"({"results":[]})", R"({"results":[1]})",
        R"({"results":[{"command":"x","times":["a"]}]})", R"({"benchmarks":[{"name":"x"}]})",
        R"({"samples_ts":[]})", "BenchmarkX 1 fast ns/op", "BenchmarkX 1 nan ns/op",
        "BenchmarkX\xff 1 2 ns/op", R"({"results":[{"command":"x","times":1}]})",
        R"({"results":[{"command":"","times":[1]}]})", R"({"samples_ts":[1]})"}) {
    const auto format = recognise_format(text, "x.json");
    ASSERT_FALSE(format.ok()) << text;
    EXPECT_EQ(format.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(format.error().message, StartsWith("x.json: "));
  }
  EXPECT_THAT(file_format("xml").error().message, HasSubstr("formats are go, gbench"));
}

TEST(Exchange, NamesAndUnitsStayWordsOfAGoLine) {
  const Series series{"a b\nc", "x\ty", false, {1, 2}, {}};
  const auto text = file_format("go").value()->write({&series, 1});
  ASSERT_TRUE(text.ok());
  const auto again = file_format("go").value()->read(*text, "x.txt");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)[0].samples, series.samples);
}

TEST(Exchange, FlagsOfOtherTypesAreNoFailure) {
  const auto read = file_format("gbench").value()->read(
      R"({"benchmarks":[{"name":"x","real_time":1,"error_occurred":"no"}]})", "x.json");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].samples.size(), 1U);
}

// Two entries in tok/s, as a ledger has them.
std::vector<Entry> measured() {
  return fold(test::synthetic_events(2, 1)).entries;
}

std::vector<Series> measured_series() {
  std::vector<Series> all;
  for (const Entry& entry : measured()) {
    for (Series& series : series_of(entry)) all.push_back(std::move(series));
  }
  return all;
}

TEST(Exchange, WritesCountedSamplesOfBothArms) {
  const std::vector<Series> series = measured_series();
  ASSERT_EQ(series.size(), 4U);
  EXPECT_THAT(series[0].name, testing::EndsWith("/base"));
  EXPECT_THAT(series[1].name, testing::EndsWith("/arm"));
  EXPECT_EQ(series[0].samples.size(), 12U);  // two rounds of six pairs, without the warm-up
  EXPECT_EQ(series[0].unit, "tok/s");
}

TEST(Exchange, EveryFormatReadsWhatItWrote) {
  const std::vector<Series> series = measured_series();
  for (const FileFormat& format : file_formats()) {
    const std::string text = format.write(series).value();
    EXPECT_EQ(recognise_format(text, "x").value()->name, format.name);
    const std::vector<Series> back = format.read(text, "x").value();
    ASSERT_EQ(back.size(), series.size()) << format.name;
    for (size_t i = 0; i < back.size(); ++i) {
      ASSERT_EQ(back[i].samples.size(), series[i].samples.size());
      const bool speeds = back[i].unit == "tok/s";
      const double scale = back[i].unit == "ns" ? 1e9 : 1;
      for (size_t k = 0; k < back[i].samples.size(); ++k) {
        const double expected = speeds ? series[i].samples[k] : scale / series[i].samples[k];
        EXPECT_NEAR(back[i].samples[k], expected, 1e-9 * expected) << format.name;
      }
    }
  }
}

TEST(Exchange, AFormatOfTimesRefusesBytes) {
  const std::vector<Series> bytes{{"rk-x/base", "B", false, {1024}, {}}};
  for (const char* name : {"gbench", "hyperfine", "llama-bench"}) {
    const auto written = file_format(name).value()->write(bytes);
    ASSERT_FALSE(written.ok());
    EXPECT_THAT(written.error().message, HasSubstr("rk-x/base: "));
  }
  EXPECT_TRUE(file_format("go").value()->write(bytes).ok());
}

// What compare.py takes of SciPy and NumPy, whose packages are 370 MB: two statistics, of which it
// prints the first beside each comparison and the second below them all.
void write_statistics_stand_in(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "scipy");
  std::ofstream(folder / "scipy/__init__.py");
  std::ofstream(folder / "scipy/stats.py")
      << "import math, types\n"
         "import numpy\n"
         "def mannwhitneyu(a, b, alternative):\n"
         "    return types.SimpleNamespace(pvalue=1.0)\n"
         "def gmean(rows):\n"
         "    return numpy.array(math.exp(sum(map(math.log, column)) / len(column))\n"
         "                       for column in zip(*rows))\n";
  std::ofstream(folder / "numpy.py") << "class array(list):\n"
                                        "    def any(self):\n"
                                        "        return any(iter(self))\n";
}

// With the stand-in always, with SciPy itself where it is.
TEST(Exchange, GoogleBenchmarksCompareReadsTheExport) {
  const std::string compare = "/usr/share/benchmark/compare.py";
  if (!std::filesystem::exists(compare)) GTEST_SKIP() << "no compare.py of libbenchmark-tools";
  const test::TemporaryFolder folder;
  write_statistics_stand_in(folder.path() / "python");
  const std::string file = (folder.path() / "export.json").string();
  const std::string out = (folder.path() / "out.txt").string();
  std::ofstream(file) << file_format("gbench").value()->write(measured_series()).value();
  std::vector<std::string> python = {"PYTHONPATH='" + (folder.path() / "python").string() +
                                     "' /usr/bin/python3 -B "};
  if (std::system("/usr/bin/python3 -c 'import scipy' >/dev/null 2>&1") == 0) {
    python.emplace_back("/usr/bin/python3 -B ");
  }
  for (const std::string& interpreter : python) {
    const std::string command =
        interpreter + compare + " filters '" + file + "' /base /arm >'" + out + "' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(out);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_THAT(text, HasSubstr(measured()[0].id)) << command;
    EXPECT_THAT(text, HasSubstr("U Test, Repetitions: 12 vs 12")) << command;
  }
}

TEST(Exchange, WritesTablesForPeople) {
  const std::vector<Entry> entries = measured();
  const std::string csv = csv_of(entries);
  EXPECT_THAT(csv, StartsWith("entry,verdict,switch,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 2 * 7);
  std::vector<Entry> odd = entries;
  odd[0].idea.model_name = "a \"b\", c|d";
  EXPECT_THAT(csv_of(odd), HasSubstr(",\"a \"\"b\"\", c|d\","));
  const std::string markdown = markdown_of(odd);
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '\n'), 4);
  EXPECT_THAT(markdown, HasSubstr("| a \"b\", c\\|d |"));
}

TEST(Exchange, MarkdownShowsFiguresAsEveryOtherTable) {
  Entry entry;
  entry.id = "rk-abcdefghijkl";
  entry.idea.scope.switch_key = "tile";
  entry.verdict.emplace();
  entry.verdict->verdict = Verdict::kNeutral;
  entry.verdict->numbers.emplace();
  entry.verdict->numbers->effect = 0.00042;
  entry.verdict->numbers->unit = "ms";
  entry.verdict->numbers->base_values = {211.0480555};
  entry.verdict->numbers->arm_values = {119.75};
  Entry floor;
  floor.idea.kind = EntryKind::kFloor;
  Entry series;
  series.imported = true;
  series.idea.text = "sleep 10";
  const std::string markdown = markdown_of(std::vector{entry, floor, series});
  EXPECT_THAT(markdown, HasSubstr("| NEUTRAL | +0.042% | 211.0 -> 119.8 ms |"));
  EXPECT_THAT(markdown, HasSubstr("| aa |  |  | identical arms |"));
  EXPECT_THAT(markdown, HasSubstr("| open (reported) |  |  | sleep 10 |"));
}

TEST(Exchange, ImportedFiguresAreReportedAndNeverBlock) {
  const std::vector<Series> series = read("hyperfine.json");
  ImportRequest request;
  request.source = "hyperfine.json";
  const Event one = import_series(series[0], request, kBy).value();
  request.switch_key = "sleep";
  request.base_value = "10";
  request.arm_value = "20";
  const Event arms = import_arms(series[0], series[1], request, kBy).value();
  const std::vector<Event> events{one, arms};
  const Ledger ledger = fold(events);
  ASSERT_EQ(ledger.entries.size(), 2U);
  for (const Entry& entry : ledger.entries) {
    EXPECT_TRUE(entry.imported);
    EXPECT_FALSE(entry.verdict);
    EXPECT_EQ(entry.import_source, "hyperfine.json");
  }
  const Entry& pair = *ledger.find(arms.entry);
  EXPECT_EQ(pair.figures["series"].size(), 2U);
  EXPECT_TRUE(pair.figures["effect"].is_number());
  Query query;
  query.scope = pair.idea.scope;
  EXPECT_FALSE(consult(ledger.entries, query).block);
  Series other = series[1];
  other.unit = "tok/s";
  EXPECT_THAT(import_arms(series[0], other, request, kBy).error().message,
              HasSubstr("expected one unit"));
}

}  // namespace
}  // namespace reckon::ledger
