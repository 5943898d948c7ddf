// The model families that Reckon runs, one explicit table (families.cpp).
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

struct Family {
  const char* name = "";       // what Checkpoint::architecture() gives of a folder
  const char* gguf_name = "";  // and of a GGUF file
  Result<std::unique_ptr<Model>> (*build)(const Checkpoint& checkpoint, WeightPlacer& placer,
                                          const BuildOptions& options) = nullptr;
};

// Every family, sorted by name. Immutable, lives for the process's life.
[[nodiscard]] std::span<const Family> families();

}  // namespace reckon::models
