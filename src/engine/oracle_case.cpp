#include "engine/oracle_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "formats/json_file.h"
#include "formats/mapped_file.h"
#include "formats/safetensors.h"

namespace reckon::engine {
namespace {

using nlohmann::json;

// "<folder>/oracle", or a GGUF file's path with ".oracle" for ".gguf".
std::string oracle_stem(const Checkpoint& checkpoint) {
  const std::string& path = checkpoint.path();
  if (checkpoint.kind() == CheckpointKind::kHuggingFace) return path + "/oracle";
  constexpr std::string_view kSuffix = ".gguf";
  const bool named = std::string_view(path).ends_with(kSuffix);
  return path.substr(0, path.size() - (named ? kSuffix.size() : 0)) + ".oracle";
}

Result<json> read_json(const std::string& path) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  json document;
  TRY(parse_json_object(path, "the file", file.bytes(), document));
  if (!document.contains("prompts") || !document["prompts"].is_array()) {
    return failed(fmt::format("{}: expected an array 'prompts'", path));
  }
  return document;
}

Result<double> margin_of(const std::string& path, const json& prompts, size_t index) {
  const char* key = "min_top2_margin";
  if (index >= prompts.size() || !prompts[index].is_object() || !prompts[index].contains(key) ||
      !prompts[index][key].is_number()) {
    return failed(fmt::format("{}: expected a number '{}' for prompt {}", path, key, index));
  }
  return prompts[index][key].get<double>();
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (const int64_t size : shape) parts.push_back(std::to_string(size));
  return "[" + join(parts, ", ") + "]";
}

// Reads one prompt's tensors, "p<i>.tokens" and so on; those of a draft head are "mtp.p<i>.hidden"
// and so on.
class PromptReader {
 public:
  PromptReader(const SafetensorsFile& file, size_t index, const models::ModelInfo& model)
      : file_(file), prefix_(fmt::format("p{}.", index)), model_(model) {}

  [[nodiscard]] bool present() const { return file_.find(prefix_ + "tokens") != nullptr; }

  [[nodiscard]] Result<OraclePrompt> read() const {
    OraclePrompt prompt;
    TRY_ASSIGN(prompt.tokens, file_.integers(prefix_ + "tokens"));
    const auto length = static_cast<int64_t>(prompt.tokens.size());
    TRY(check_shape("tokens", {length}));
    if (length == 0) return failed(fmt::format("{}: '{}tokens' is empty", file_.path(), prefix_));
    TRY_ASSIGN(prompt.greedy, file_.integers(prefix_ + "greedy"));
    TRY(read_logits(length, prompt));
    if (file_.find(prefix_ + "hidden.0") != nullptr) TRY(read_hidden(length, prompt));
    if (model_.has_draft_head && file_.find("mtp." + prefix_ + "hidden") != nullptr) {
      TRY_ASSIGN(prompt.drafts, PromptReader(file_, "mtp." + prefix_, model_).read_drafts(length));
    }
    return prompt;
  }

 private:
  PromptReader(const SafetensorsFile& file, std::string prefix, const models::ModelInfo& model)
      : file_(file), prefix_(std::move(prefix)), model_(model) {}

  [[nodiscard]] Result<OracleDrafts> read_drafts(int64_t length) const {
    OracleDrafts drafts;
    TRY_ASSIGN(drafts.hidden, file_.floats(prefix_ + "hidden"));
    TRY(check_shape("hidden", {length - 1, model_.hidden}));
    TRY_ASSIGN(drafts.logits, file_.floats(prefix_ + "logits"));
    TRY(check_shape("logits", {length - 1, model_.vocabulary}));
    TRY_ASSIGN(const std::vector<int32_t> next, file_.integers(prefix_ + "next"));
    TRY(check_shape("next", {1}));
    drafts.next = next[0];
    TRY_ASSIGN(drafts.tokens, file_.integers(prefix_ + "drafts"));
    const auto depth = static_cast<int64_t>(drafts.tokens.size());
    TRY(check_shape("drafts", {depth}));
    TRY_ASSIGN(drafts.draft_logits, file_.floats(prefix_ + "draft_logits"));
    TRY(check_shape("draft_logits", {depth, model_.vocabulary}));
    return drafts;
  }

  [[nodiscard]] Status check_shape(const std::string& name,
                                   const std::vector<int64_t>& expected) const {
    const SafetensorsTensor* tensor = file_.find(prefix_ + name);
    if (tensor != nullptr && tensor->shape == expected) return {};
    return failed(fmt::format("{}: tensor '{}{}' has shape {}; expected {}", file_.path(), prefix_,
                              name, tensor == nullptr ? "none" : shape_text(tensor->shape),
                              shape_text(expected)));
  }

  [[nodiscard]] Status read_logits(int64_t length, OraclePrompt& prompt) const {
    TRY_ASSIGN(prompt.logits, file_.floats(prefix_ + "logits"));
    prompt.logit_rows = static_cast<int64_t>(prompt.logits.size()) / model_.vocabulary;
    TRY(check_shape("logits", {prompt.logit_rows, model_.vocabulary}));
    if (prompt.logit_rows < 1 || prompt.logit_rows > length) {
      return failed(fmt::format("{}: tensor '{}logits' has {} rows for a prompt of {} tokens",
                                file_.path(), prefix_, prompt.logit_rows, length));
    }
    return {};
  }

  [[nodiscard]] Status read_hidden(int64_t length, OraclePrompt& prompt) const {
    for (int64_t layer = 0; layer <= model_.layers; ++layer) {
      const std::string name = fmt::format("hidden.{}", layer);
      TRY_ASSIGN(std::vector<float> values, file_.floats(prefix_ + name));
      TRY(check_shape(name, {length, model_.hidden}));
      prompt.hidden.push_back(std::move(values));
    }
    return {};
  }

  const SafetensorsFile& file_;
  std::string prefix_;
  const models::ModelInfo& model_;
};

}  // namespace

float OracleDrafts::margin(size_t draft) const {
  const auto width = draft_logits.size() / tokens.size();
  std::vector<float> row(draft_logits.begin() + static_cast<ptrdiff_t>(draft * width),
                         draft_logits.begin() + static_cast<ptrdiff_t>((draft + 1) * width));
  std::ranges::partial_sort(row, row.begin() + 2, std::greater<>());
  return row[0] - row[1];
}

Result<std::vector<OraclePrompt>> read_oracle_case(const Checkpoint& checkpoint,
                                                   const models::ModelInfo& model) {
  const std::string stem = oracle_stem(checkpoint);
  TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(stem + ".safetensors"));
  TRY_ASSIGN(const json document, read_json(stem + ".json"));
  std::vector<OraclePrompt> prompts;
  while (true) {
    const PromptReader reader(file, prompts.size(), model);
    if (!reader.present()) break;
    TRY_ASSIGN(OraclePrompt prompt, reader.read());
    TRY_ASSIGN(prompt.min_top2_margin,
               margin_of(stem + ".json", document["prompts"], prompts.size()));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.size() != document["prompts"].size() || prompts.empty()) {
    return failed(fmt::format("{}.safetensors: {} prompts where {}.json has {}", stem,
                              prompts.size(), stem, document["prompts"].size()));
  }
  return prompts;
}

}  // namespace reckon::engine
