// The typed bodies of ledger events. `encode` writes JSON (empty and unset fields left out),
// `decode` reads it; fields that this version does not know are kept in `extra` and written back.
// decode's errors name the field and what was expected. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/event.h"
#include "ledger/scope.h"

namespace reckon::ledger {

using Sources = std::map<std::string, std::string>;  // variant or rule in reach -> source hash
using Extra = nlohmann::json;  // an object; empty unless a newer version wrote more

enum class EntryKind {
  kComparison,  // "ab"
  kFloor,       // "aa": identical arms, never a verdict
  kTuning,      // "tune": a sweep that a rule file was made from; neither rounds nor a verdict
};
[[nodiscard]] std::string_view entry_kind_name(EntryKind kind);

enum class Verdict { kWon, kLost, kNeutral, kInconclusive, kVoid, kBroke, kOutOfMemory };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // "WON" … "OUT-OF-MEMORY"
[[nodiscard]] Result<Verdict> parse_verdict(std::string_view name);

enum class VoidReason { kEqualDispatch, kDisturbed };  // "equal-dispatch", "disturbed"

struct Reproduction {
  std::string command;     // the exact command
  std::string queue_text;  // the content of the queue file
  std::string commit;
  Extra extra = Extra::object();
};

struct IdeaBody {
  EntryKind kind = EntryKind::kComparison;
  std::string experiment;  // id in its queue
  std::string text;        // the idea in a sentence
  Scope scope;
  std::optional<double> claim;  // least gain worth having, as a share: 0.02 is +2%
  std::string device_name;      // for people; never matched
  std::string model_name;       // for people; never matched
  Reproduction reproduce;
  std::string force_reason;  // why the ledger's answer was overridden, if it was
  Extra extra = Extra::object();
};

// One pair as it was timed, in the metric's unit.
struct PairSample {
  double base = 0;
  double arm = 0;
  bool arm_first = false;
  bool warmup = false;  // kept, not counted
  Extra extra = Extra::object();
};

struct Round {
  std::string id;  // unique over all ledgers; a round counts once however often it is seen
  int64_t index = 0;
  std::string started;  // as Event::time
  uint64_t seed = 0;    // of the slot order
  std::vector<PairSample> pairs;
  double base_value = 0;  // medians of the counted samples, in the metric's unit
  double arm_value = 0;
  double median_log = 0;  // the round's result (measure/pairs.h); > 0 is the better arm
  Extra extra = Extra::object();
};

struct Environment {
  std::string device_name;
  std::string driver;
  std::string kernel;
  std::string compiler;
  std::string commit;
  bool dirty = false;                           // a dirty tree makes an entry unfinished
  std::map<std::string, std::string> readings;  // clocks, load, temperature, container limits
  std::map<std::string, double> facts;          // numbers that predicates may ask about
  Extra extra = Extra::object();
};

struct Proof {
  bool observed = false;  // else as the plan predicts
  std::string base_fingerprint;
  std::string arm_fingerprint;
  std::vector<std::string> only_base;  // dispatch rows at the declared reach
  std::vector<std::string> only_arm;
  std::vector<std::string> side_effects;  // rows that differ outside the declared reach
  Extra extra = Extra::object();
};

struct Divergence {
  std::string prompt;
  int64_t position = 0;
  int64_t base_token = 0;
  int64_t arm_token = 0;
  std::optional<double> margin;  // top-2 logit margin of the base arm
  Extra extra = Extra::object();
};

struct TokenCheck {
  bool identical = false;
  int64_t compared = 0;  // tokens compared
  std::optional<Divergence> first_divergence;
  std::optional<double> mean_kl;            // nats a token
  std::optional<double> perplexity_change;  // a share
  Extra extra = Extra::object();
};

struct Peaks {
  uint64_t base_bytes = 0;
  uint64_t arm_bytes = 0;
  Extra extra = Extra::object();
};

struct PlanTerm {
  std::string name;
  uint64_t bytes = 0;
  Extra extra = Extra::object();
};

// The memory that was planned against the budget: the whole of OUT-OF-MEMORY's evidence.
struct MemoryPlan {
  uint64_t budget_bytes = 0;
  uint64_t base_bytes = 0;
  uint64_t arm_bytes = 0;
  std::vector<PlanTerm> arm_terms;  // largest first
  Extra extra = Extra::object();
};

struct Interval {
  double low = 0;
  double high = 0;
  Extra extra = Extra::object();
};

// The number. Shares are signed fractions (-0.039 is -3.9%), > 0 the better arm.
struct Numbers {
  std::string metric;
  std::string unit;
  bool higher_is_better = true;
  std::vector<double> base_values;  // one a round, in `unit`
  std::vector<double> arm_values;
  std::optional<double> effect;
  std::optional<Interval> interval;     // of the effect, a share
  std::optional<Interval> noise_band;   // around zero, a share
  std::optional<double> claim;          // that the verdict was given for
  std::optional<int64_t> noise_rounds;  // K
  std::optional<double> smallest_effect;
  Extra extra = Extra::object();
};

struct MeasuredBody {
  Round round;
  std::optional<Proof> proof;
  std::optional<TokenCheck> tokens;
  std::optional<Peaks> peaks;
  Sources sources;
  Environment environment;
  Extra extra = Extra::object();
};

struct VerdictBody {
  Verdict verdict = Verdict::kInconclusive;
  std::optional<VoidReason> void_reason;  // set exactly for VOID
  std::string detail;                     // what a reader must know beside the number
  std::optional<Numbers> numbers;         // absent for VOID: no number is given as a result
  std::vector<std::string> rounds;        // ids of the rounds that it rests on
  std::optional<Proof> proof;
  std::optional<TokenCheck> tokens;
  std::optional<Peaks> peaks;
  std::optional<MemoryPlan> memory_plan;
  Sources sources;
  Environment environment;
  std::string mechanism;
  std::vector<std::string> evidence;      // links and table rows under the mechanism
  std::vector<std::string> revisit_when;  // predicates (predicate.h)
  std::string conditions;                 // the same in free text
  std::string lever;
  std::string lever_entry;  // the entry that pulled it
  Extra extra = Extra::object();
};

// Fields that are set replace the entry's own.
struct NoteBody {
  std::string text;
  std::string mechanism;
  std::vector<std::string> evidence;
  std::vector<std::string> revisit_when;
  std::string conditions;
  std::string lever;
  std::string lever_entry;
  Extra extra = Extra::object();
};

struct StatusBody {
  std::string reason;
  std::string by;  // an entry id; required for kSuperseded
  Extra extra = Extra::object();
};

struct ImportedBody {
  std::string source;  // where the figures were published
  std::string provenance = "reported";
  IdeaBody idea;
  std::optional<VerdictBody> result;
  nlohmann::json figures = nlohmann::json::object();  // as reported, for display
  Extra extra = Extra::object();
};

// Defined for IdeaBody, MeasuredBody, VerdictBody, NoteBody, StatusBody and ImportedBody.
template <typename Body>
[[nodiscard]] nlohmann::json encode(const Body& body);
template <typename Body>
[[nodiscard]] Result<Body> decode(const nlohmann::json& json);

// Decodes the body that the event's type calls for and checks what the types cannot say: a round
// has an id, a VOID its reason, a superseded entry its successor, predicates parse.
[[nodiscard]] Status check_body(const Event& event);
// What check_body() says of each event that it does not accept, behind "`location`: ".
[[nodiscard]] std::vector<std::string> body_errors(std::span<const Event> events,
                                                   const std::string& location);

}  // namespace reckon::ledger
