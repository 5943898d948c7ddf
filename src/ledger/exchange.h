// Figures of other benchmark tools: series of samples, read from their files and written to them.
//
// - go: Go benchmark text, as benchstat reads it. Read: every value of every line; written: any
// unit.
// - gbench: Google Benchmark's JSON, as its compare.py reads it. Read: real_time of each
// repetition;
//   written: times.
// - hyperfine: what `hyperfine --export-json` writes. Read and written: times.
// - llama-bench: what `llama-bench -o jsonl` writes. Read: samples_ts; written: tok/s.
//
// A speed in tok/s is written as time per token where a format holds times. Pure and thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/amend.h"
#include "ledger/event.h"
#include "ledger/fold.h"

namespace reckon::ledger {

struct Series {
  std::string name;
  std::string unit;  // "s", "ms", "us", "ns", "tok/s", "B", or as the tool says
  bool higher_is_better = false;
  std::vector<double> samples;
  nlohmann::json details = nlohmann::json::object();  // what else the file says of it
};

struct FileFormat {
  std::string_view name;
  // `path` stands in messages. Errors: not such a file, or no samples in it.
  Result<std::vector<Series>> (*read)(std::string_view text, const std::string& path);
  // Error: a series that the format cannot hold, by name.
  Result<std::string> (*write)(std::span<const Series> series);
};
[[nodiscard]] std::span<const FileFormat> file_formats();
// Usage error: no such format; lists them.
[[nodiscard]] Result<const FileFormat*> file_format(std::string_view name);
// By what is in the text. Usage error naming `path`: none of them.
[[nodiscard]] Result<const FileFormat*> recognise_format(std::string_view text,
                                                         const std::string& path);

// The counted samples of every round, for both arms: named "rk-…/base" and "rk-…/arm". None where
// nothing was measured here.
[[nodiscard]] std::vector<Series> series_of(const Entry& entry);

// A line a sample, with a heading, as RFC 4180 has it.
[[nodiscard]] std::string csv_of(std::span<const Entry> entries);
// A table, a line an entry.
[[nodiscard]] std::string markdown_of(std::span<const Entry> entries);

// What a file says, as an entry that was reported elsewhere.
struct ImportRequest {
  std::string source;
  std::string idea;        // "": the names of the series
  std::string switch_key;  // with both values where two series are arms of a switch
  std::string base_value;
  std::string arm_value;
  std::string device_name;
  std::string model_name;
};
// One series as it stands.
[[nodiscard]] Result<Event> import_series(const Series& series, const ImportRequest& request,
                                          const Signature& signature);
// Two series in the same unit as the arms of a switch. No verdict: that is for who measured.
[[nodiscard]] Result<Event> import_arms(const Series& base, const Series& arm,
                                        const ImportRequest& request, const Signature& signature);

}  // namespace reckon::ledger
