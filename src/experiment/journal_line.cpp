#include "experiment/journal_line.h"

#include "base/hash.h"
#include "experiment/json_fields.h"
#include "experiment/row_json.h"

namespace reckon::experiment {
namespace {

using nlohmann::json;

constexpr int kJournalSchema = 1;
const std::string kWhat = "journal";

std::string sealed(json object) {
  object["schema"] = kJournalSchema;
  object["sum"] = hash_hex(json_line(object));
  return json_line(object);
}

Status check_seal(json& object) {
  std::string sum;
  int schema = 0;
  JsonFields fields(object, kWhat);
  fields.read("sum", sum);
  fields.read("schema", schema);
  TRY(fields.status());
  object.erase("sum");
  if (hash_hex(json_line(object)) != sum) return failed(kWhat + ": checksum does not match");
  if (schema != kJournalSchema) return failed(kWhat + ": written by another version");
  return {};
}

Result<JournalPair> decode_pair(const json& object) {
  JournalPair pair;
  json base_rows = json::array();
  json arm_rows = json::array();
  JsonFields fields(object, kWhat);
  fields.read("round", pair.round.id);
  fields.read("round_index", pair.round.index);
  fields.read("round_started", pair.round.started);
  fields.read("seed", pair.round.seed);
  fields.read("process", pair.process);
  fields.read("index", pair.index);
  fields.read("warmup", pair.warmup);
  fields.read("arm_first", pair.arm_first);
  fields.read("base", pair.base);
  fields.read("arm", pair.arm);
  fields.read("seconds", pair.seconds);
  fields.read("base_peak_bytes", pair.base_peak_bytes);
  fields.read("arm_peak_bytes", pair.arm_peak_bytes);
  fields.read_optional("base_rows", base_rows);
  fields.read_optional("arm_rows", arm_rows);
  fields.read_optional("base_kernel_use", pair.base_kernel_use);
  fields.read_optional("arm_kernel_use", pair.arm_kernel_use);
  fields.read_optional("tokens", pair.tokens);
  fields.read_optional("arm_tokens", pair.arm_tokens);
  fields.read_optional("environment", pair.environment);
  fields.read_optional("disturbed", pair.disturbed);
  fields.read_optional("paused_seconds", pair.paused_seconds);
  const auto number = [&](const char* key, std::optional<double>& value) {
    if (object.is_object() && object.contains(key)) fields.read(key, value.emplace());
  };
  number("margin", pair.margin);
  number("base_control", pair.base_control);
  number("arm_control", pair.arm_control);
  TRY(fields.status());
  TRY_ASSIGN(pair.base_rows, decode_rows(base_rows, kWhat));
  TRY_ASSIGN(pair.arm_rows, decode_rows(arm_rows, kWhat));
  return pair;
}

}  // namespace

std::string journal_line(const JournalPair& pair) {
  json object{{"type", "pair"},
              {"round", pair.round.id},
              {"round_index", pair.round.index},
              {"round_started", pair.round.started},
              {"seed", pair.round.seed},
              {"process", pair.process},
              {"index", pair.index},
              {"warmup", pair.warmup},
              {"arm_first", pair.arm_first},
              {"base", pair.base},
              {"arm", pair.arm},
              {"seconds", pair.seconds},
              {"base_peak_bytes", pair.base_peak_bytes},
              {"arm_peak_bytes", pair.arm_peak_bytes}};
  if (!pair.base_rows.empty()) object["base_rows"] = encode_rows(pair.base_rows);
  if (!pair.arm_rows.empty()) object["arm_rows"] = encode_rows(pair.arm_rows);
  if (!pair.base_kernel_use.empty()) object["base_kernel_use"] = pair.base_kernel_use;
  if (!pair.arm_kernel_use.empty()) object["arm_kernel_use"] = pair.arm_kernel_use;
  if (!pair.tokens.empty()) object["tokens"] = pair.tokens;
  if (!pair.arm_tokens.empty()) object["arm_tokens"] = pair.arm_tokens;
  if (pair.margin) object["margin"] = *pair.margin;
  if (!pair.disturbed.empty()) object["disturbed"] = pair.disturbed;
  if (pair.paused_seconds > 0) object["paused_seconds"] = pair.paused_seconds;
  if (pair.base_control) object["base_control"] = *pair.base_control;
  if (pair.arm_control) object["arm_control"] = *pair.arm_control;
  if (!pair.environment.empty()) object["environment"] = pair.environment;
  return sealed(std::move(object));
}

Result<std::string> journal_line(std::span<const ledger::Event> events) {
  json lines = json::array();
  for (const ledger::Event& event : events) {
    TRY_ASSIGN(std::string line, ledger::event_line(event));
    lines.push_back(std::move(line));
  }
  return sealed({{"type", "commit"}, {"events", std::move(lines)}});
}

Result<JournalLine> parse_journal_line(std::string_view text) {
  TRY_ASSIGN(json object, parse_json(text, kWhat));
  TRY(check_seal(object));
  std::string type;
  JsonFields fields(object, kWhat);
  fields.read("type", type);
  JournalLine line;
  if (type == "commit") {
    std::vector<std::string> lines;
    fields.read("events", lines);
    TRY(fields.status());
    for (const std::string& event_text : lines) {
      TRY_ASSIGN(ledger::Event event, ledger::parse_event_line(event_text, kWhat));
      line.events.push_back(std::move(event));
    }
    return line;
  }
  TRY(fields.status());
  if (type != "pair") return failed(kWhat + ": unknown type of line");
  TRY_ASSIGN(line.pair, decode_pair(object));
  return line;
}

}  // namespace reckon::experiment
