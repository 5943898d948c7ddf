// Which matrices of a checkpoint become another type at load: one of Reckon's own packed ones, f16
// or bf16.
//
// A scheme is one type for all matrices, or a file of name patterns (docs/quantisation.md):
//
//   - "*.self_attn.*": q8     # patterns are tried in order, the first that fits decides
//   - lm_head.weight: q8
//   - "*": q4
//
// A pattern is a tensor's whole name, in which * stands for any characters and ? for one. What no
// pattern fits keeps its type, as what is "none" does. Copies are cheap enough; const and
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace reckon::models {

class QuantScheme {
 public:
  // Packs nothing: every matrix keeps the file's type.
  QuantScheme() = default;
  // "none", "q4" (all matrices p4), "q8" (all p8), "f16" or "bf16", embedding and head included, or
  // the path of a file that ends in .yaml or .yml. Usage errors: anything else; those of the file
  // have its name and the line.
  [[nodiscard]] static Result<QuantScheme> parse(std::string_view text);
  // A file's text; `path` names it in errors.
  [[nodiscard]] static Result<QuantScheme> parse_rules(std::string_view text,
                                                       const std::string& path);
  [[nodiscard]] static std::vector<std::string> names();  // of the schemes without a file

  [[nodiscard]] bool packs() const;
  // What the matrix of this name is packed into; none where it keeps its type.
  [[nodiscard]] std::optional<DType> type_of(std::string_view tensor) const;

  // "q4"; "mixed-" and 8 digits of the hash of its rules for a file. Equal for equal rules.
  [[nodiscard]] std::string id() const;
  [[nodiscard]] bool is_mixed() const { return !rules_.empty(); }
  // A line for each rule that decides for none of these matrices: "FILE:3: …".
  [[nodiscard]] std::vector<std::string> unused(std::span<const std::string> matrices) const;

 private:
  struct Rule {
    std::string pattern;
    std::optional<DType> type;
    int line = 0;
  };
  [[nodiscard]] const Rule* rule_for(std::string_view tensor) const;

  std::optional<DType> matrices_;
  std::vector<Rule> rules_;
  std::string path_;
};

}  // namespace reckon::models
