#include "cli/ledger_json.h"

#include <nlohmann/json.hpp>

namespace reckon::cli {
namespace {

nlohmann::json finding_json(const ledger::Finding& finding) {
  nlohmann::json json = {{"entry", finding.entry}, {"verdict", nullptr}, {"text", finding.text}};
  if (finding.verdict) json["verdict"] = verdict_name(*finding.verdict);
  return json;
}

nlohmann::json optional_json(const std::optional<ledger::Finding>& finding) {
  return finding ? finding_json(*finding) : nlohmann::json();
}

nlohmann::json stale_json(const ledger::StaleFinding& stale) {
  nlohmann::json json = finding_json(stale);
  json["changed"] = stale.changed;
  return json;
}

nlohmann::json offer_json(const ledger::OfferFinding& offer) {
  nlohmann::json json = finding_json(offer);
  json["predicate"] = offer.predicate;
  return json;
}

nlohmann::json near_json(const ledger::NearFinding& near) {
  nlohmann::json json = finding_json(near);
  json["differences"] = nlohmann::json::array();
  for (const ledger::ScopeDifference& difference : near.differences) {
    json["differences"].push_back(
        {{"field", difference.field}, {"there", difference.a}, {"here", difference.b}});
  }
  return json;
}

nlohmann::json status_change_json(const ledger::StatusChange& change) {
  return {{"status", entry_status_name(change.status)},
          {"time", change.time},
          {"writer", change.writer},
          {"reason", change.reason},
          {"by", change.by}};
}

template <typename Findings, typename ToJson>
nlohmann::json list_json(const Findings& findings, ToJson to_json) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& finding : findings) list.push_back(to_json(finding));
  return list;
}

}  // namespace

nlohmann::json entry_summary_json(const ledger::Summary& entry) {
  nlohmann::json json = {{"id", entry.id},
                         {"kind", ledger::entry_kind_name(entry.kind)},
                         {"verdict", nullptr},
                         {"effect", nullptr},
                         {"metric", entry.metric},
                         {"switch", entry.switch_key},
                         {"base", entry.base_value},
                         {"arm", entry.arm_value},
                         {"model", entry.model_name},
                         {"device", entry.device_name},
                         {"idea", entry.idea},
                         {"rounds_measured", entry.rounds},
                         {"imported", entry.imported},
                         {"status", entry_status_name(entry.status)},
                         {"created", entry.created},
                         {"updated", entry.updated},
                         {"writer", entry.writer}};
  if (entry.verdict) json["verdict"] = verdict_name(*entry.verdict);
  if (entry.effect) json["effect"] = *entry.effect;
  return json;
}

nlohmann::json entry_json(const ledger::Entry& entry, const ledger::Chain& chain) {
  nlohmann::json json = entry_summary_json(summary_of(entry));
  json["details"] = ledger::encode(entry.idea);
  json["record"] = entry.verdict ? ledger::encode(*entry.verdict) : nlohmann::json();
  json["verdict_time"] = entry.verdict_time;
  json["status_reason"] = entry.status_reason;
  json["superseded_by"] = entry.superseded_by;
  json["import_source"] = entry.import_source;
  json["figures"] = entry.figures;
  json["unfinished"] = entry.unfinished_because();
  json["rounds"] = nlohmann::json::array();
  for (const auto& round : entry.rounds) json["rounds"].push_back(ledger::encode(round));
  json["notes"] = nlohmann::json::array();
  for (const ledger::Note& note : entry.notes) {
    json["notes"].push_back({{"time", note.time}, {"writer", note.writer}, {"text", note.text}});
  }
  json["history"] = list_json(entry.history, status_change_json);
  json["chain"] = {{"superseded_by", list_json(chain.superseded_by, entry_summary_json)},
                   {"supersedes", list_json(chain.supersedes, entry_summary_json)},
                   {"lever_of", list_json(chain.lever_of, entry_summary_json)}};
  return json;
}

nlohmann::json consultation_json(const ledger::Consultation& consultation) {
  return {{"block", optional_json(consultation.block)},
          {"join", optional_json(consultation.join)},
          {"allowed", list_json(consultation.allowed, finding_json)},
          {"stale", list_json(consultation.stale, stale_json)},
          {"offers", list_json(consultation.offers, offer_json)},
          {"near", list_json(consultation.near, near_json)},
          {"near_count", consultation.near_count}};
}

}  // namespace reckon::cli
