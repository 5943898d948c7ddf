// The three formats that are JSON.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "ledger/exchange/formats.h"

namespace reckon::ledger::exchange {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t whole_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// The list of objects under `key`, or why this is another format.
Result<json> list_under(std::string_view text, const std::string& path, const char* key) {
  TRY_ASSIGN(json document, parse_json(text, path));
  if (!document.is_object() || !document.contains(key) || !document[key].is_array()) {
    return usage_error(fmt::format("{}: no list '{}'", path, key));
  }
  for (const json& item : document[key]) {
    if (!item.is_object()) return usage_error(fmt::format("{}: {}: expected objects", path, key));
  }
  return document[key];
}

Status none_empty(const std::vector<Series>& found, const std::string& path) {
  if (found.empty()) return usage_error(path + ": no samples");
  for (const Series& series : found) {
    if (series.samples.empty()) {
      return usage_error(fmt::format("{}: no samples of {}", path, one_line(series.name)));
    }
  }
  return {};
}

json without(json object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) object.erase(key);
  return object;
}

// What llama-bench calls a test: "pp512", "tg128", "pp512+tg128", "pp512 @ d1024".
std::string test_name(const json& object) {
  const int64_t prompt = whole_of(object, "n_prompt");
  const int64_t generated = whole_of(object, "n_gen");
  const int64_t depth = whole_of(object, "n_depth");
  std::string name = text_of(object, "test");
  if (name.empty() && prompt > 0) name = fmt::format("pp{}", prompt);
  if (text_of(object, "test").empty()) {
    if (generated > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", generated);
    if (depth > 0) name += fmt::format(" @ d{}", depth);
  }
  return name;
}

}  // namespace

Result<std::vector<Series>> read_gbench(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const json benchmarks, list_under(text, path, "benchmarks"));
  std::vector<Series> found;
  std::map<std::string, size_t> index;
  for (const json& item : benchmarks) {
    const bool failed_run = item.contains("error_occurred") && item["error_occurred"] == true;
    if (text_of(item, "run_type") == "aggregate" || failed_run) continue;
    const std::string run = text_of(item, "run_name");
    const std::string name = run.empty() ? text_of(item, "name") : run;
    const auto time = item.find("real_time");
    if (name.empty() || time == item.end() || !time->is_number()) {
      return usage_error(path + ": a benchmark without a name or real_time");
    }
    const auto [at, is_new] = index.emplace(name, found.size());
    if (is_new) {
      found.push_back({name,
                       text_of(item, "time_unit"),
                       false,
                       {},
                       without(item, {"real_time", "cpu_time", "repetition_index", "iterations"})});
      if (found.back().unit.empty()) found.back().unit = "ns";
    }
    found[at->second].samples.push_back(time->get<double>());
  }
  TRY(none_empty(found, path));
  return found;
}

Result<std::string> write_gbench(std::span<const Series> all) {
  json benchmarks = json::array();
  int family = 0;
  for (const Series& series : all) {
    TRY_ASSIGN(const std::vector<double> seconds, all_seconds(series, "gbench"));
    for (size_t i = 0; i < seconds.size(); ++i) {
      benchmarks.push_back({{"name", series.name},
                            {"family_index", family},
                            {"per_family_instance_index", 0},
                            {"run_name", series.name},
                            {"run_type", "iteration"},
                            {"repetitions", seconds.size()},
                            {"repetition_index", i},
                            {"threads", 1},
                            {"iterations", 1},
                            {"real_time", seconds[i] * 1e9},
                            {"cpu_time", seconds[i] * 1e9},
                            {"time_unit", "ns"}});
    }
    ++family;
  }
  const json document = {{"context", {{"executable", "reckon ledger export"}}},
                         {"benchmarks", std::move(benchmarks)}};
  return document.dump(2) + "\n";
}

Result<std::vector<Series>> read_hyperfine(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const json results, list_under(text, path, "results"));
  std::vector<Series> found;
  for (const json& item : results) {
    if (!item.contains("times") || text_of(item, "command").empty()) {
      return usage_error(path + ": a result without its command or times");
    }
    Series series{text_of(item, "command"), "s", false, {}, without(item, {"times", "exit_codes"})};
    TRY_ASSIGN(series.samples, numbers_of(item["times"], path + ": times"));
    found.push_back(std::move(series));
  }
  TRY(none_empty(found, path));
  return found;
}

Result<std::string> write_hyperfine(std::span<const Series> all) {
  json results = json::array();
  for (const Series& series : all) {
    TRY_ASSIGN(const std::vector<double> seconds, all_seconds(series, "hyperfine"));
    const Spread spread = spread_of(seconds);
    results.push_back({{"command", series.name},
                       {"mean", spread.mean},
                       {"stddev", spread.stddev},
                       {"median", spread.median},
                       {"user", 0.0},
                       {"system", 0.0},
                       {"min", spread.min},
                       {"max", spread.max},
                       {"times", seconds},
                       {"exit_codes", std::vector<int>(seconds.size(), 0)}});
  }
  return json{{"results", std::move(results)}}.dump(2) + "\n";
}

Result<std::vector<Series>> read_llama_bench(std::string_view text, const std::string& path) {
  std::vector<Series> found;
  for (const std::string& line : split(text, '\n')) {
    if (line.find_first_not_of(" \r") == std::string::npos) continue;
    TRY_ASSIGN(const json item, parse_json(line, path));
    if (!item.is_object() || !item.contains("samples_ts")) {
      return usage_error(path + ": a line without samples_ts");
    }
    const std::string test = test_name(item);
    if (test.empty()) return usage_error(path + ": a line without its test");
    const std::string model = text_of(item, "model_type");
    Series series{model.empty() ? test : model + " " + test,
                  "tok/s",
                  true,
                  {},
                  without(item, {"samples_ts", "samples_ns"})};
    TRY_ASSIGN(series.samples, numbers_of(item["samples_ts"], path + ": samples_ts"));
    found.push_back(std::move(series));
  }
  TRY(none_empty(found, path));
  return found;
}

Result<std::string> write_llama_bench(std::span<const Series> all) {
  std::string text;
  for (const Series& series : all) {
    if (series.unit != "tok/s") {
      return usage_error(fmt::format("{}: {} is not tok/s, and llama-bench holds nothing else",
                                     one_line(series.name), one_line(series.unit)));
    }
    const Spread spread = spread_of(series.samples);
    json item = series.details;
    item["test"] = series.name;
    item["avg_ts"] = spread.mean;
    item["stddev_ts"] = spread.stddev;
    item["samples_ts"] = series.samples;
    text += item.dump() + "\n";
  }
  return text;
}

}  // namespace reckon::ledger::exchange
