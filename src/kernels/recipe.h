// A recipe: switch values for a kind of machine, as a YAML file whose every line cites the ledger
// entry that earned it (docs/switches.md; `ledger lint` holds it to that):
//
//   when: {backend: cpu, device.isa: amx}
//   switches:
//     - {key: prefill.chunk, value: 512, ledger: rk-...}
//     - {key: cpu.threads, value: 8, when: {device.units: [16, 32]}, ledger: rk-...}
//
// Pure but for reading the named file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/device.h"
#include "kernels/switches.h"

namespace reckon::kernels {

struct Recipe {
  // The values that a field of the device may have: backend, device.vendor, device.isa (of a GPU
  // its features) and device.units.
  struct Condition {
    std::string field;
    std::vector<std::string> values;
  };
  using Conditions = std::vector<Condition>;  // all of them hold; none: any device

  struct Setting {
    std::string key, value;
    int line = 0;
    Conditions when;  // beside the recipe's own
  };

  std::string path;  // starts every message
  Conditions when;
  std::vector<Setting> settings;

  // Sets the switches and says, a line each, which were left out because their own condition does
  // not hold. Usage errors: a recipe for another device, naming what it is for and what this one
  // is; an unknown switch or value, or a switch that two lines set here, naming the line. Of what
  // is left out the value is not looked at: another backend may know it.
  [[nodiscard]] Result<std::vector<std::string>> apply(const Device& device,
                                                       SwitchSet& switches) const;
};

// Usage errors "PATH:LINE: ...": as parse_yaml; a key or a field that a recipe does not have; a
// switch that stands twice, but for lines that each have a condition of their own.
[[nodiscard]] Result<Recipe> parse_recipe(std::string_view text, const std::string& path);
[[nodiscard]] Result<Recipe> load_recipe(const std::string& path);

}  // namespace reckon::kernels
