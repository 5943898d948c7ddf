// Asks a ledger by its index and by its lines, for tests: all answers must be equal.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ledger/catalog.h"

namespace reckon::ledger::test {

inline std::vector<std::string> texts_of(const Consultation& answer) {
  std::vector<std::string> texts{answer.block ? "block " + answer.block->text : "no block",
                                 answer.join ? "join " + answer.join->text : "no join",
                                 "near " + std::to_string(answer.near_count)};
  for (const auto& finding : answer.allowed) texts.push_back(finding.text);
  for (const auto& finding : answer.stale) texts.push_back(finding.text);
  for (const auto& finding : answer.offers) texts.push_back(finding.text);
  for (const auto& finding : answer.near) texts.push_back(near_text(finding));
  return texts;
}

inline std::string text_of(const Entry& entry) {
  std::string text = encode(entry.idea).dump() + entry.status_reason;
  if (entry.verdict) text += encode(*entry.verdict).dump();
  for (const MeasuredBody& round : entry.rounds) text += encode(round).dump();
  for (const Note& note : entry.notes) text += note.time + note.text;
  for (const StatusChange& change : entry.history) text += change.time + change.reason;
  return text;
}

inline void expect_equal_classes(Catalog& indexed, Catalog& folded, const Scope& scope) {
  const std::vector<Entry> found = indexed.of_class(scope).value();
  const std::vector<Entry> expected = folded.of_class(scope).value();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].id + text_of(found[i]), expected[i].id + text_of(expected[i]));
    for (const MeasuredBody& body : found[i].rounds) {
      EXPECT_TRUE(indexed.has_round(body.round.id).value()) << body.round.id;
      EXPECT_TRUE(folded.has_round(body.round.id).value()) << body.round.id;
    }
  }
  EXPECT_FALSE(indexed.has_round("rd-unknown").value());
  EXPECT_FALSE(folded.has_round("rd-unknown").value());
}

// Lists, some fifty entries, and for each scope a consultation and its workload class.
inline void expect_equal_answers(const Store& store, const std::vector<Scope>& scopes) {
  const auto indexed = open_catalog(store).value();
  const auto folded = open_catalog_without_index(store).value();
  EXPECT_EQ(indexed->warnings(), folded->warnings());
  const std::vector<Summary> list = indexed->list().value();
  EXPECT_EQ(list, folded->list().value());
  for (size_t i = 0; i < list.size(); i += 1 + list.size() / 50) {
    EXPECT_EQ(summary_of(indexed->entry(list[i].id).value()), list[i]);
    EXPECT_EQ(text_of(indexed->entry(list[i].id).value()),
              text_of(folded->entry(list[i].id.substr(3)).value()));
  }
  for (const Scope& scope : scopes) {
    for (const char* source : {"0123456789abcdef", "changed"}) {
      Query query;
      query.scope = scope;
      query.sources = Sources{{"fast_tile", source}, {"exact_gemv", "fedcba9876543210"}};
      EXPECT_EQ(texts_of(indexed->consult(query).value()),
                texts_of(folded->consult(query).value()));
    }
    expect_equal_classes(*indexed, *folded, scope);
  }
}

// Scopes of entries, and others near them.
inline std::vector<Scope> some_scopes(const std::vector<Event>& events) {
  std::vector<Scope> scopes;
  for (const Event& event : events) {
    if (event.type != EventType::kIdea) continue;
    scopes.push_back(decode<IdeaBody>(event.body).value().scope);
    scopes.push_back(scopes.back());
    scopes.back().chunk *= 2;
    if (scopes.size() >= 20) break;
  }
  return scopes;
}

}  // namespace reckon::ledger::test
