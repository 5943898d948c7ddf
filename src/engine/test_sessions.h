// Helpers of the engine's tests: golden models, sessions with switches, logits of every row.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/oracle_case.h"
#include "engine/session.h"
#include "formats/test_files.h"

namespace reckon::engine {

using Assignments = std::vector<std::string>;  // "key=value"

inline kernels::SwitchSet switches_of(const Assignments& assignments) {
  kernels::SwitchSet switches;
  for (const std::string& assignment : assignments) {
    const Status status = switches.set_assignment(assignment);
    if (!status.ok()) ADD_FAILURE() << status.error().message;
  }
  return switches;
}

inline std::unique_ptr<LoadedModel> open_model(const std::string& path,
                                               const ModelOptions& options = {}) {
  auto model = LoadedModel::open(path, options);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(model).value();
}

inline std::unique_ptr<Session> make_session(const LoadedModel& model,
                                             const Assignments& assignments,
                                             const SessionShape& shape) {
  auto session = Session::create(model, {switches_of(assignments), shape, std::nullopt});
  if (!session.ok()) {
    ADD_FAILURE() << session.error().message;
    return nullptr;
  }
  return std::move(session).value();
}

// The logits of every token of a prefill, [tokens, vocabulary]. `routes` is told of the experts,
// and may force others (Selections).
inline std::vector<float> prefill_rows(const LoadedModel& model, const Assignments& assignments,
                                       const std::vector<int32_t>& tokens,
                                       const RoutedRows& routes = {}) {
  std::vector<float> rows;
  const auto session = make_session(
      model, assignments, {static_cast<int64_t>(tokens.size()), 0, models::LogitRows::kAll});
  if (session == nullptr) return rows;
  if (routes) session->observe_routes(routes);
  const Status status = session->prefill_all(tokens, [&](int64_t, Activation logits) {
    rows.insert(rows.end(), logits.data, logits.data + logits.rows * logits.columns);
  });
  if (!status.ok()) ADD_FAILURE() << status.error().message;
  return rows;
}

// The same, one decode a token.
inline std::vector<float> decode_rows(const LoadedModel& model, const Assignments& assignments,
                                      const std::vector<int32_t>& tokens) {
  std::vector<float> rows;
  const auto session = make_session(model, assignments, {static_cast<int64_t>(tokens.size())});
  if (session == nullptr) return rows;
  for (const int32_t token : tokens) {
    const auto logits = session->decode(token);
    if (!logits.ok()) {
      ADD_FAILURE() << logits.error().message;
      return rows;
    }
    rows.insert(rows.end(), logits->begin(), logits->end());
  }
  return rows;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Golden models with an oracle case beside them.
inline std::vector<std::string> oracle_folders() {
  return {"oracle/llama-s0",         "oracle/llama-s1",   "oracle/llama-h48-tied",
          "oracle/llama-h48-untied", "oracle/qwen3-s0",   "oracle/qwen3-h80",
          "oracle/qwen2-h56",        "oracle/gemma3-h64", "oracle/llama-fp8"};
}
// Of those with recurrent state and a head that drafts.
inline std::vector<std::string> hybrid_folders() {
  return {"oracle/qwen3_5-s0",     "oracle/qwen3_5-s1",      "oracle/qwen3_5-h40",
          "oracle/qwen3_5_moe-s0", "oracle/qwen3_5_moe-h36", "oracle/qwen3_next-s0",
          "oracle/qwen3_next-h32"};
}
inline std::vector<std::string> oracle_ggufs() {
  return {"gguf/tiny-llama-mixed.gguf", "gguf/tiny-llama-v2.gguf", "gguf/tiny-qwen3.gguf"};
}
inline std::vector<std::string> oracle_models() {
  std::vector<std::string> models = oracle_folders();
  for (std::string& name : hybrid_folders()) models.push_back(std::move(name));
  for (std::string& name : oracle_ggufs()) models.push_back(std::move(name));
  return models;
}

// The longest recorded prompt of a golden model.
inline std::vector<int32_t> longest_prompt(const LoadedModel& model) {
  auto prompts = read_oracle_case(model.checkpoint(), model.model().info());
  if (!prompts.ok()) {
    ADD_FAILURE() << prompts.error().message;
    return {};
  }
  std::vector<int32_t> longest;
  for (OraclePrompt& prompt : *prompts) {
    if (prompt.tokens.size() > longest.size()) longest = std::move(prompt.tokens);
  }
  return longest;
}

// The first `count` tokens of the committed prose in the model's vocabulary.
inline std::vector<int32_t> prose_tokens(const LoadedModel& model, size_t count) {
  const auto tokenizer = model.tokenizer();
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.error().message;
    return {};
  }
  const std::string text = read_file(golden_path("text/prose-2000.txt"));
  std::vector<int32_t> tokens = (*tokenizer)->encode(text, Special::kIgnore);
  EXPECT_GE(tokens.size(), count);
  tokens.resize(count);
  return tokens;
}

// Test names may hold letters, digits and underscores only.
inline std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(info.param.find('/') + 1);
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

}  // namespace reckon::engine
