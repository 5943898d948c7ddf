#include "ledger/consult.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/figures.h"
#include "base/text.h"
#include "ledger/facts.h"

namespace reckon::ledger {
namespace {

constexpr std::string_view kOverride = "--force \"reason\" measures it again and records why";

std::string day(const std::string& time) {
  return time.substr(0, 10);
}

// Names whose hash differs or that only one side has.
std::vector<std::string> changed_sources(const Sources& then, const Sources& now) {
  std::vector<std::string> changed;
  for (const auto& [name, hash] : then) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != hash) changed.push_back(name);
  }
  for (const auto& [name, hash] : now) {
    if (!then.contains(name)) changed.push_back(name);
  }
  return changed;
}

bool is_reopened(const Entry& entry) {
  return entry.status == EntryStatus::kReopened;
}

// What the result that counts was built from; empty where it was not recorded.
const Sources& sources_of(const Entry& entry) {
  static const Sources none;
  if (is_reopened(entry)) {
    return entry.counting_rounds().empty() ? none : entry.counting_rounds().back().sources;
  }
  if (entry.verdict && !entry.verdict->sources.empty()) return entry.verdict->sources;
  return entry.rounds.empty() ? none : entry.rounds.back().sources;
}

Facts facts_at_measuring(const Entry& entry) {
  Facts facts = entry.verdict ? facts_of(entry.verdict->environment) : Facts();
  facts.merge(facts_of(entry.idea.scope));
  return facts;
}

// The first condition of the entry that holds now and did not hold when it was measured.
std::optional<std::string> condition_met(const Entry& entry, const Facts& now) {
  for (std::string& text : open_conditions(entry)) {
    if (holds(parse_predicate(text).value(), now)) return std::move(text);
  }
  return std::nullopt;
}

// Why this entry of the same scope and the same sources does not block; "" where it does.
std::string why_not_blocking(const Entry& entry, const Query& query) {
  if (entry.imported) return "its figures were reported elsewhere, not measured here";
  if (entry.status == EntryStatus::kOverturned) return "it was overturned: " + entry.status_reason;
  if (entry.idea.kind == EntryKind::kTuning) return "it is a sweep, which gives no verdict";
  if (!entry.verdict) return "it has no verdict yet";
  if (is_reopened(entry)) return "it was reopened: " + entry.status_reason;
  switch (entry.verdict->verdict) {
    case Verdict::kInconclusive:
      return "it was inconclusive";
    case Verdict::kVoid:
      return entry.verdict->void_reason == VoidReason::kDisturbed ? "the machine was disturbed"
                                                                  : "";
    case Verdict::kNeutral: {
      std::optional<double> neutral_to = entry.idea.claim;
      if (entry.verdict->numbers && entry.verdict->numbers->claim) {
        neutral_to = entry.verdict->numbers->claim;
      }
      if (!neutral_to) return "it does not say to which claim it is neutral";
      if (query.claim && *query.claim >= *neutral_to) return "";
      return fmt::format("it is neutral to a claim of {}, and this asks about {}",
                         signed_share_text(*neutral_to),
                         query.claim ? signed_share_text(*query.claim) : "any gain at all");
    }
    case Verdict::kWon:
    case Verdict::kLost:
    case Verdict::kBroke:
    case Verdict::kOutOfMemory:
      return "";
  }
  return "";
}

bool takes_rounds(const Entry& entry) {
  return !entry.imported && entry.idea.kind != EntryKind::kTuning &&
         entry.status != EntryStatus::kOverturned &&
         (is_reopened(entry) || !entry.verdict || entry.verdict->verdict == Verdict::kInconclusive);
}

std::string join_text(const Entry& entry, const std::string& reason) {
  const std::string line = fmt::format("{}: {}", entry.id, summarize(entry));
  if (!is_reopened(entry)) return line + "; new rounds join it";
  return fmt::format("{}; {}; its next verdict counts only rounds from now on", line, reason);
}

Finding finding(const Entry& entry, std::string text) {
  Finding found{entry.id, std::nullopt, std::move(text)};
  if (entry.verdict) found.verdict = entry.verdict->verdict;
  return found;
}

std::string block_text(const Entry& entry) {
  std::string text = fmt::format("{}: {}", entry.id, summarize(entry));
  if (!entry.verdict->mechanism.empty()) text += "; because " + entry.verdict->mechanism;
  if (!entry.verdict->lever.empty()) text += "; lever: " + entry.verdict->lever;
  if (entry.verdict->verdict == Verdict::kVoid) {
    text += "; measurable again once a source or rule in reach changes";
  }
  return text + fmt::format("; {}", kOverride);
}

// `joined`: the entry that answer.join names, if any.
void consult_same_scope(const Entry& entry, const Query& query, bool condition_holds,
                        Consultation& answer, const Entry*& joined) {
  const std::string line = fmt::format("{}: {}", entry.id, summarize(entry));
  const auto& then = sources_of(entry);
  if (query.sources && !then.empty() && !entry.imported) {
    std::vector<std::string> changed = changed_sources(then, *query.sources);
    if (!changed.empty()) {
      const std::string text = fmt::format("{}; changed since: {}", line, join(changed, ", "));
      answer.stale.push_back({finding(entry, text), std::move(changed)});
      return;
    }
  }
  std::string reason = why_not_blocking(entry, query);
  if (reason.empty() && condition_holds) reason = "a condition to revisit it holds now";
  if (reason.empty()) {
    answer.block = finding(entry, block_text(entry));
  } else if (takes_rounds(entry)) {
    if (joined != nullptr && is_reopened(*joined) && !is_reopened(entry)) return;
    joined = &entry;
    answer.join = finding(entry, join_text(entry, reason));
  } else {
    answer.allowed.push_back(finding(entry, fmt::format("{}; not blocking: {}", line, reason)));
  }
}

std::string differing(const std::string& field, const std::string& there, const std::string& here) {
  return fmt::format("{} {} there, {} here", field, there.empty() ? "unset" : there,
                     here.empty() ? "unset" : here);
}

// A workload class is "key=value" words, most of which are equal.
std::string differing_words(const ScopeDifference& difference) {
  const std::vector<std::string> there = split(difference.a, ' ');
  const std::vector<std::string> here = split(difference.b, ' ');
  if (there.size() != here.size()) {
    return differing(difference.field, difference.a, difference.b);
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < there.size(); ++i) {
    const size_t equals = there[i].find('=');
    if (there[i] == here[i]) continue;
    parts.push_back(differing(there[i].substr(0, equals), there[i].substr(equals + 1),
                              here[i].substr(here[i].find('=') + 1)));
  }
  return join(parts, "; ");
}

}  // namespace

std::vector<std::string> open_conditions(const Entry& entry) {
  std::vector<std::string> open;
  if (!entry.verdict || entry.status == EntryStatus::kOverturned) return open;
  const Facts then = facts_at_measuring(entry);
  for (const std::string& text : entry.verdict->revisit_when) {
    const Result<Predicate> predicate = parse_predicate(text);
    if (predicate.ok() && !holds(*predicate, then)) open.push_back(text);
  }
  return open;
}

std::string near_text(const NearFinding& near) {
  constexpr size_t kFewUnset = 3;  // more of them are an entry that knows little of its scope
  std::vector<std::string> unset;
  for (const ScopeDifference& difference : near.differences) {
    if (difference.a.empty() || difference.a == "0") unset.push_back(difference.field);
  }
  if (unset.size() <= kFewUnset) unset.clear();
  std::vector<std::string> parts;
  for (const ScopeDifference& difference : near.differences) {
    if (std::find(unset.begin(), unset.end(), difference.field) != unset.end()) continue;
    parts.push_back(difference.field == "workload_class"
                        ? differing_words(difference)
                        : differing(difference.field, difference.a, difference.b));
  }
  if (!unset.empty()) parts.push_back("not stated there: " + join(unset, ", "));
  return fmt::format("{} ({})", near.text, join(parts, "; "));
}

std::string summarize(const Entry& entry) {
  std::string text;
  if (entry.idea.kind == EntryKind::kTuning) {
    text = fmt::format("a sweep, which gives no verdict, from {}", day(entry.created));
  } else if (!entry.verdict) {
    text = fmt::format("{}, {}, no verdict, from {}",
                       entry.idea.kind == EntryKind::kFloor ? "identical arms" : "open",
                       counted(static_cast<int64_t>(entry.rounds.size()), "round"),
                       day(entry.created));
  } else {
    const VerdictBody& verdict = *entry.verdict;
    text = verdict_name(verdict.verdict);
    if (verdict.numbers && verdict.numbers->effect) {
      text += " " + signed_share_text(*verdict.numbers->effect);
    }
    if (verdict.numbers && !verdict.numbers->base_values.empty()) {
      text += fmt::format(" ({})", arms_text(verdict.numbers->base_values,
                                             verdict.numbers->arm_values, verdict.numbers->unit));
    }
    if (!verdict.detail.empty()) text += fmt::format(" [{}]", verdict.detail);
    text += fmt::format(" {} {}", entry.imported ? "imported on" : "on", day(entry.verdict_time));
  }
  if (entry.status == EntryStatus::kSuperseded) {
    text += fmt::format(", superseded by {}", entry.superseded_by);
  } else if (entry.status != EntryStatus::kOpen) {
    text += fmt::format(", {}", entry_status_name(entry.status));
  }
  return text;
}

Consultation consult(std::span<const Entry> entries, const Query& query) {
  Consultation answer;
  Facts now = query.facts;
  now.merge(facts_of(query.scope));
  const Entry* joined = nullptr;
  for (const Entry& entry : entries) {
    const bool same_scope = entry.idea.scope == query.scope;
    const bool same_switch = entry.idea.scope.switch_key == query.scope.switch_key;
    if (!same_switch) continue;
    const std::string line = fmt::format("{}: {}", entry.id, summarize(entry));
    const std::optional<std::string> condition = condition_met(entry, now);
    if (condition) {
      answer.offers.push_back(
          {finding(entry, fmt::format("{}; {} holds now", line, *condition)), *condition});
    }
    if (same_scope) {
      consult_same_scope(entry, query, condition.has_value(), answer, joined);
    } else if (!query.scope.switch_key.empty()) {
      NearFinding near{finding(entry, line), differences(entry.idea.scope, query.scope)};
      answer.near.push_back(std::move(near));
    }
  }
  std::stable_sort(answer.near.begin(), answer.near.end(),
                   [](const NearFinding& a, const NearFinding& b) {
                     return a.differences.size() < b.differences.size();
                   });
  answer.near_count = answer.near.size();
  answer.near.resize(std::min(answer.near.size(), kNearest));
  return answer;
}

}  // namespace reckon::ledger
