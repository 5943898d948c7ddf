#include "engine/plan_notes.h"

#include <fmt/format.h>

#include "kernels/variants.h"

namespace reckon::engine {
namespace {

struct Extrapolated {
  int shapes = 0;
  int of = 0;
  std::string first;
};

}  // namespace

std::vector<std::string> tile_rule_notes(std::span<const PlannedCall> calls) {
  std::map<std::string, Extrapolated> by_rules;
  for (const PlannedCall& planned : calls) {
    const kernels::Choice& choice = *planned.choice;
    if (choice.tile_rules == nullptr) continue;
    Extrapolated& found = by_rules[choice.tile_rules->name];
    ++found.of;
    if (choice.extrapolated.empty() || choice.params.tile == kernels::TileShape::kAuto) continue;
    if (found.shapes++ == 0) {
      found.first = fmt::format("{}: {}", shape_text(planned.call), choice.extrapolated);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [name, found] : by_rules) {
    if (found.shapes == 0) continue;
    notes.push_back(fmt::format("tile rules {} are extrapolated for {} of {} prefill shapes ({})",
                                name, found.shapes, found.of, found.first));
  }
  return notes;
}

std::map<std::string, std::string> tile_rule_hashes(std::span<const PlannedCall> calls) {
  std::map<std::string, std::string> hashes;
  for (const PlannedCall& planned : calls) {
    const auto& rules = planned.choice->tile_rules;
    if (rules != nullptr) hashes["tile_rules." + rules->name] = rules->content_hash;
  }
  return hashes;
}

}  // namespace reckon::engine
