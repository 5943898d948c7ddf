// Which matrices of a checkpoint are packed at load, and into which of Reckon's own types.
#pragma once

#include <optional>
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
  // "none", "q4" (all matrices p4) or "q8" (all p8), embedding and head included; a usage error
  // otherwise.
  [[nodiscard]] static Result<QuantScheme> parse(std::string_view name);
  [[nodiscard]] static std::vector<std::string> names();

  [[nodiscard]] bool packs() const { return matrices_.has_value(); }
  // What the matrix of this name is packed into; none where it keeps its type.
  [[nodiscard]] std::optional<DType> type_of(std::string_view /*tensor*/) const {
    return matrices_;
  }

 private:
  std::optional<DType> matrices_;
};

}  // namespace reckon::models
