#include "models/families.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "models/gemma3.h"
#include "models/llama.h"
#include "models/qwen2.h"
#include "models/qwen3.h"
#include "models/qwen3_5.h"
#include "models/qwen3_next.h"

namespace reckon::models {
namespace {

constexpr std::array kFamilies{
    Family{"gemma3", "gemma3", build_gemma3},
    Family{"llama", "llama", build_llama},
    Family{"qwen2", "qwen2", build_qwen2},
    Family{"qwen3", "qwen3", build_qwen3},
    Family{"qwen3_5", "qwen35", build_qwen3_5},
    Family{"qwen3_5_moe", "qwen35moe", build_qwen3_5_moe},
    Family{"qwen3_next", "qwen3next", build_qwen3_next},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

Result<std::unique_ptr<Model>> build_model(const Checkpoint& checkpoint, WeightPlacer& placer,
                                           const BuildOptions& options) {
  const bool gguf = checkpoint.kind() == CheckpointKind::kGguf;
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    names.emplace_back(gguf ? family.gguf_name : family.name);
    if (checkpoint.architecture() == names.back()) return family.build(checkpoint, placer, options);
  }
  return failed(fmt::format("{}: the model family '{}' is not supported; expected one of {}",
                            checkpoint.path(), checkpoint.architecture(), join(names, ", ")));
}

}  // namespace reckon::models
