// Events, scopes and folders for the tests of this module.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ledger/event.h"
#include "ledger/record.h"
#include "ledger/scope.h"

namespace reckon::ledger::test {

// A folder of its own for one test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-ledger-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string at(int minute, int day = 14) {
  std::string time = "2026-09-14T08:30:00Z";
  time[8] = static_cast<char>('0' + day / 10);
  time[9] = static_cast<char>('0' + day % 10);
  time[14] = static_cast<char>('0' + minute / 10 % 6);
  time[15] = static_cast<char>('0' + minute % 10);
  return time;
}

inline Scope expert_tile_scope() {
  Scope scope;
  scope.switch_key = "moe.expert_tile";
  scope.base_value = "32";
  scope.arm_value = "64";
  scope.device = {"nvidia", "sm_90", 132, 141};
  scope.backend = "cuda";
  scope.model_family = "qwen3_5_moe";
  scope.shape_hash = "shape";
  scope.model_hash = "model";
  scope.weight_format = "q4";
  scope.chunk = 2048;
  scope.rows = 2048;
  scope.context = 4096;
  scope.metric = "prefill_tok_per_s";
  scope.workload_class = "prefill/2048/6";
  scope.prompt_hash = "prompt";
  scope.tokens_policy = "identical";
  scope.reach = "moe_matmul/prefill";
  scope.base_switches = {{"prefill.chunk", "2048"}};
  scope.arm_switches = {{"prefill.chunk", "2048"}};
  return scope;
}

inline Scope floor_scope() {
  Scope scope = expert_tile_scope();
  scope.switch_key = scope.base_value = scope.arm_value = scope.reach = "";
  return scope;
}

inline Event idea(const Scope& scope, const std::string& writer = "ann",
                  const std::string& time = at(0)) {
  IdeaBody body;
  body.kind = scope.switch_key.empty() ? EntryKind::kFloor : EntryKind::kComparison;
  body.text = "One dequantisation pass an expert instead of two";
  body.scope = scope;
  body.claim = 0.02;
  return make_first_event(EventType::kIdea, encode(body), writer, time).value();
}

inline Event measured(const std::string& entry, const std::string& round_id, double median_log,
                      const std::string& time = at(1)) {
  MeasuredBody body;
  body.round.id = round_id;
  body.round.median_log = median_log;
  body.round.pairs = {{100.0, 97.0, false, false}, {100.0, 96.0, true, false}};
  body.sources = {{"moe_tile", "aaaa"}};
  return make_event(EventType::kMeasured, entry, encode(body), "ann", time);
}

inline VerdictBody lost() {
  VerdictBody body;
  body.verdict = Verdict::kLost;
  body.numbers.emplace();
  body.numbers->metric = "prefill_tok_per_s";
  body.numbers->unit = "tok/s";
  body.numbers->base_values = {949.4, 951.9};
  body.numbers->arm_values = {914.6, 914.7};
  body.numbers->effect = -0.039;
  body.sources = {{"moe_tile", "aaaa"}};
  body.mechanism = "occupancy costs more than the saved pass";
  body.lever = "more tokens a chunk";
  return body;
}

inline Event verdict(const std::string& entry, const VerdictBody& body,
                     const std::string& time = at(2)) {
  return make_event(EventType::kVerdict, entry, encode(body), "ann", time);
}

inline Event note(const std::string& entry, const NoteBody& body, const std::string& time = at(3)) {
  return make_event(EventType::kNote, entry, encode(body), "ann", time);
}

inline Event remark(const std::string& entry, const std::string& text,
                    const std::string& time = at(3)) {
  NoteBody body;
  body.text = text;
  return note(entry, body, time);
}

inline Event status(EventType type, const std::string& entry, const StatusBody& body,
                    const std::string& time = at(4)) {
  return make_event(type, entry, encode(body), "ann", time);
}

}  // namespace reckon::ledger::test
