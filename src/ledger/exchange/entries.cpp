// Entries to series and tables, and series to entries.
#include <fmt/format.h>

#include <array>

#include "base/figures.h"
#include "base/text.h"
#include "ledger/exchange/formats.h"
#include "ledger/summary.h"

namespace reckon::ledger {
namespace {

using exchange::spread_of;

// A metric's unit where no verdict says it: its name ends with it.
std::string unit_of(const Entry& entry) {
  if (entry.verdict && entry.verdict->numbers && !entry.verdict->numbers->unit.empty()) {
    return entry.verdict->numbers->unit;
  }
  const std::string& metric = entry.idea.scope.metric;
  if (metric.ends_with("tok_per_s")) return "tok/s";
  if (metric.starts_with("ms_")) return "ms";
  return metric.ends_with("bytes") ? "B" : metric;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : one_line(text)) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string row_of(const std::vector<std::string>& fields) {
  std::vector<std::string> cells;
  for (const std::string& field : fields) cells.push_back(csv_field(field));
  return join(cells, ",") + "\r\n";
}

nlohmann::json series_json(const Series& series) {
  return {{"name", series.name},
          {"unit", series.unit},
          {"samples", series.samples},
          {"median", spread_of(series.samples).median},
          {"details", series.details}};
}

ImportedBody body_of(const ImportRequest& request, const Series& series) {
  ImportedBody body;
  body.source = request.source;
  body.idea.text = request.idea;
  body.idea.device_name = request.device_name;
  body.idea.model_name = request.model_name;
  body.idea.scope.switch_key = request.switch_key;
  body.idea.scope.base_value = request.base_value;
  body.idea.scope.arm_value = request.arm_value;
  body.idea.scope.metric = series.unit;
  return body;
}

Result<Event> imported(const ImportedBody& body, const Signature& signature) {
  return make_first_event(EventType::kImported, encode(body), signature.writer, signature.time);
}

}  // namespace

std::vector<Series> series_of(const Entry& entry) {
  if (entry.imported || entry.rounds.empty()) return {};
  const bool higher =
      !entry.verdict || !entry.verdict->numbers || entry.verdict->numbers->higher_is_better;
  const std::string unit = unit_of(entry);
  const Scope& scope = entry.idea.scope;
  Series base{entry.id + "/base",
              unit,
              higher,
              {},
              {{"entry", entry.id}, {"switch", scope.switch_key}, {"value", scope.base_value}}};
  Series arm{entry.id + "/arm",
             unit,
             higher,
             {},
             {{"entry", entry.id}, {"switch", scope.switch_key}, {"value", scope.arm_value}}};
  for (const MeasuredBody& measured : entry.rounds) {
    for (const PairSample& pair : measured.round.pairs) {
      if (pair.warmup) continue;
      base.samples.push_back(pair.base);
      arm.samples.push_back(pair.arm);
    }
  }
  if (base.samples.empty()) return {};
  return {std::move(base), std::move(arm)};
}

std::string csv_of(std::span<const Entry> entries) {
  std::string text =
      row_of({"entry", "verdict", "switch", "base_value", "arm_value", "model", "device", "metric",
              "unit", "round", "pair", "warmup", "arm_first", "base", "arm"});
  for (const Entry& entry : entries) {
    const Summary summary = summary_of(entry);
    const std::string verdict(summary.verdict ? verdict_name(*summary.verdict) : "");
    for (size_t round = 0; round < entry.rounds.size(); ++round) {
      const std::vector<PairSample>& pairs = entry.rounds[round].round.pairs;
      for (size_t pair = 0; pair < pairs.size(); ++pair) {
        text += row_of({summary.id, verdict, summary.switch_key, summary.base_value,
                        summary.arm_value, summary.model_name, summary.device_name, summary.metric,
                        unit_of(entry), std::to_string(round + 1), std::to_string(pair + 1),
                        pairs[pair].warmup ? "1" : "0", pairs[pair].arm_first ? "1" : "0",
                        fmt::format("{}", pairs[pair].base), fmt::format("{}", pairs[pair].arm)});
      }
    }
  }
  return text;
}

std::string markdown_of(std::span<const Entry> entries) {
  std::string text =
      "| entry | verdict | effect | base -> arm | switch | model | device | why |\n"
      "|---|---|---:|---|---|---|---|---|\n";
  for (const Entry& entry : entries) {
    const Summary summary = summary_of(entry);
    std::string verdict(summary.verdict ? verdict_name(*summary.verdict) : "open");
    if (summary.kind != EntryKind::kComparison) verdict = entry_kind_name(summary.kind);
    if (entry.imported) verdict += " (reported)";
    std::string values;
    if (entry.verdict && entry.verdict->numbers && !entry.verdict->numbers->base_values.empty()) {
      const Numbers& numbers = *entry.verdict->numbers;
      values = arms_text(numbers.base_values, numbers.arm_values, numbers.unit);
    }
    const std::array cells{
        summary.id,
        verdict,
        summary.effect ? signed_share_text(*summary.effect) : std::string(),
        values,
        summary.switch_key.empty()
            ? entry.imported ? summary.idea : "identical arms"
            : fmt::format("{} {} -> {}", summary.switch_key, summary.base_value, summary.arm_value),
        summary.model_name,
        summary.device_name,
        entry.verdict ? entry.verdict->mechanism : std::string()};
    for (const std::string& cell : cells) text += "| " + markdown_cell(cell) + " ";
    text += "|\n";
  }
  return text;
}

Result<Event> import_series(const Series& series, const ImportRequest& request,
                            const Signature& signature) {
  ImportedBody body = body_of(request, series);
  if (body.idea.text.empty()) body.idea.text = series.name;
  body.figures = {{"series", {series_json(series)}}};
  return imported(body, signature);
}

Result<Event> import_arms(const Series& base, const Series& arm, const ImportRequest& request,
                          const Signature& signature) {
  if (base.unit != arm.unit) {
    return usage_error(fmt::format("{} is in {} and {} in {}: expected one unit", base.name,
                                   base.unit, arm.name, arm.unit));
  }
  ImportedBody body = body_of(request, base);
  if (body.idea.text.empty()) body.idea.text = fmt::format("{} against {}", arm.name, base.name);
  const double ratio = spread_of(arm.samples).median / spread_of(base.samples).median;
  body.figures = {{"series", {series_json(base), series_json(arm)}},
                  {"effect", (base.higher_is_better ? ratio : 1 / ratio) - 1}};
  return imported(body, signature);
}

}  // namespace reckon::ledger
