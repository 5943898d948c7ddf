// A false block is worse than a repeat: 10,000 questions that each differ in one thing from what an
// entry answers, asked as the product asks, through the index.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ledger/catalog_testing.h"
#include "ledger/open.h"
#include "ledger/synthetic_testing.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

constexpr int kSwitches = 100;  // an entry has few neighbours, which take most of a question's time
constexpr std::array kSettled = {Verdict::kWon,   Verdict::kLost, Verdict::kNeutral,
                                 Verdict::kBroke, Verdict::kVoid, Verdict::kOutOfMemory};

// What a settled entry answers: exactly this is refused.
struct Question {
  nlohmann::json scope;
  Verdict verdict = Verdict::kLost;
  std::optional<double> claim = 0.02;
  Sources sources = {{"fast_tile", "0123456789abcdef"}, {"exact_gemv", "fedcba9876543210"}};

  [[nodiscard]] Query query() const {
    Query query;
    query.scope = scope_from_json(scope).value();
    query.claim = claim;
    query.sources = sources;
    return query;
  }
};

// The synthetic ledger has WON, LOST and INCONCLUSIVE; this one, all verdicts that block.
Event settled(const Event& event, Verdict verdict) {
  VerdictBody body = decode<VerdictBody>(event.body).value();
  body.verdict = verdict;
  if (verdict == Verdict::kNeutral) body.numbers->claim = 0.02;
  if (verdict == Verdict::kVoid) {
    body.void_reason = VoidReason::kEqualDispatch;
    body.numbers.reset();
  }
  return make_event(EventType::kVerdict, event.entry, encode(body), event.writer, event.time);
}

class NearMissTest : public testing::Test {
 protected:
  NearMissTest() {
    std::map<std::string, Question> open;
    std::vector<Event> events;
    for (Event& event : test::synthetic_events(100, 4, kSwitches)) {
      if (event.type == EventType::kOverturned || event.type == EventType::kReopened) continue;
      if (event.type == EventType::kIdea) {
        open[event.entry].scope = scope_to_json(decode<IdeaBody>(event.body).value().scope);
      }
      if (event.type == EventType::kVerdict) {
        Question& question = open[event.entry];
        question.verdict = kSettled[questions_.size() % kSettled.size()];
        event = settled(event, question.verdict);
        questions_.push_back(question);
        if (question.verdict == Verdict::kNeutral) neutral_.push_back(question);
      }
      events.push_back(std::move(event));
    }
    EXPECT_TRUE(store_->append(events).ok());
    catalog_ = open_catalog(*store_).value();
  }

  size_t pick(size_t count) { return random_() % count; }
  Consultation ask(const Question& question) { return catalog_->consult(question.query()).value(); }

  // Changes one key of the scope, sets one that is unset, unsets one that is set, or adds one that
  // only a later version knows. Returns which.
  std::string change_scope(nlohmann::json& scope) {
    nlohmann::json& switches = scope[pick(2) == 0 ? "base_switches" : "arm_switches"];
    switch (pick(8)) {
      case 0:
        scope["field_of_later"] = "x";
        return "field_of_later";
      case 1:
        scope["device"]["field_of_later"] = 1;
        return "device.field_of_later";
      case 2:
        switches["kernel.other"] = "on";
        return "another switch";
      case 3:
        switches.clear();
        return "no switch";
      case 4:
        return change_leaf(scope, [](nlohmann::json& leaf) {
          if (leaf.is_string()) {
            leaf = leaf == "" ? "set" : "";
          } else {
            leaf = leaf == 0 ? 1 : 0;
          }
        });
      default:
        return change_leaf(scope, [](nlohmann::json& leaf) {
          if (leaf.is_string()) {
            leaf = leaf.get<std::string>() + "'";
          } else {
            leaf = leaf.get<int64_t>() + 1;
          }
        });
    }
  }

  template <typename Change>
  std::string change_leaf(nlohmann::json& scope, const Change& change) {
    const nlohmann::json leaves = scope.flatten();
    auto leaf = leaves.begin();
    do {
      leaf = leaves.begin();
      std::advance(leaf, static_cast<long>(pick(leaves.size())));
    } while (leaf->is_null());
    change(scope[nlohmann::json::json_pointer(leaf.key())]);
    return leaf.key();
  }

  std::string change_sources(Sources& sources) {
    switch (pick(3)) {
      case 0:
        sources["fast_tile"] += "'";
        return "a source changed";
      case 1:
        sources.erase("exact_gemv");
        return "a source less";
      default:
        sources["fast_tile_64"] = "0";
        return "a source more";
    }
  }

  const test::TemporaryFolder folder_;
  const std::unique_ptr<Store> store_ = open_store(folder_.path().string()).value();
  std::vector<Question> questions_, neutral_;
  std::unique_ptr<Catalog> catalog_;
  std::mt19937_64 random_{5};
};

TEST_F(NearMissTest, TheQuestionsThemselvesAreRefused) {
  ASSERT_EQ(questions_.size(), 100U);
  for (const Question& question : questions_) {
    EXPECT_TRUE(ask(question).block) << verdict_name(question.verdict);
  }
}

TEST_F(NearMissTest, NoneBlocks) {
  constexpr int kQuestions = 10000;
  const auto folded = open_catalog_without_index(*store_).value();
  std::map<std::string, int> changes;
  for (int i = 0; i < kQuestions; ++i) {
    const bool claim = i % 10 == 9;
    Question question = claim ? neutral_[pick(neutral_.size())] : questions_[pick(100)];
    std::string changed = "claim";
    if (claim) {
      question.claim = pick(2) == 0 ? std::nullopt : std::optional(0.0199);
    } else if (i % 10 == 8) {
      changed = change_sources(question.sources);
    } else {
      changed = change_scope(question.scope);
    }
    ++changes[changed];
    const Consultation answer = ask(question);
    ASSERT_FALSE(answer.block || answer.join) << changed << ": " << question.scope.dump();
    const size_t shown = answer.allowed.size() + answer.stale.size() + answer.near_count;
    EXPECT_GE(shown, changed == "/switch" ? 0U : 1U) << changed;
    if (i % 50 == 0) {
      EXPECT_EQ(test::texts_of(answer), test::texts_of(folded->consult(question.query()).value()));
    }
  }
  // Every field of a scope and of its device was changed, and every other kind of change made.
  const nlohmann::json fields = scope_to_json(Scope());
  for (const auto& [field, value] : fields.items()) {
    if (value.is_object()) continue;
    EXPECT_GT(changes["/" + field], 0) << field;
  }
  for (const char* change :
       {"/device/vendor", "/device/isa", "/device/units", "/device/memory_gib", "no switch",
        "another switch", "field_of_later", "device.field_of_later", "a source less",
        "a source more", "a source changed", "claim"}) {
    EXPECT_GT(changes[change], 0) << change;
  }
}

}  // namespace
}  // namespace reckon::ledger
