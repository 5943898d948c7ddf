// Private to the exchange with other tools: one reader and one writer a format (exchange.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/exchange.h"

namespace reckon::ledger::exchange {

[[nodiscard]] Result<std::vector<Series>> read_go(std::string_view text, const std::string& path);
[[nodiscard]] Result<std::string> write_go(std::span<const Series> series);
[[nodiscard]] Result<std::vector<Series>> read_gbench(std::string_view text,
                                                      const std::string& path);
[[nodiscard]] Result<std::string> write_gbench(std::span<const Series> series);
[[nodiscard]] Result<std::vector<Series>> read_hyperfine(std::string_view text,
                                                         const std::string& path);
[[nodiscard]] Result<std::string> write_hyperfine(std::span<const Series> series);
[[nodiscard]] Result<std::vector<Series>> read_llama_bench(std::string_view text,
                                                           const std::string& path);
[[nodiscard]] Result<std::string> write_llama_bench(std::span<const Series> series);

// The document, or an error that names `path`.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, const std::string& path);
// Every number of a list; an error where it is none.
[[nodiscard]] Result<std::vector<double>> numbers_of(const nlohmann::json& list,
                                                     const std::string& where);
// A value as seconds: times as they are, tok/s as time per token; unset for other units and for
// what is not above zero.
[[nodiscard]] std::optional<double> seconds_of(double value, std::string_view unit);
[[nodiscard]] Result<std::vector<double>> all_seconds(const Series& series,
                                                      std::string_view format);

struct Spread {
  double mean = 0;
  double stddev = 0;  // of a sample
  double median = 0;
  double min = 0;
  double max = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);  // at least one

}  // namespace reckon::ledger::exchange
