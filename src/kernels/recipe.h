// A recipe: switch values for a kind of machine, as a YAML file whose every line cites the ledger
// entry that earned it (docs/switches.md; `ledger lint` holds it to that):
//
//   when: {backend: cpu, device.isa: amx}
//   switches:
//     - {key: prefill.chunk, value: 512, ledger: rk-...}
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
  struct Setting {
    std::string key, value;
    int line = 0;
  };
  std::string path;          // starts every message
  std::string backend, isa;  // "": any
  std::vector<Setting> settings;

  // Sets every switch. Usage errors: a recipe for another device, naming what it is for and what
  // this one is; an unknown switch or value, naming the line.
  [[nodiscard]] Status apply(const Device& device, SwitchSet& switches) const;
};

// Usage errors "PATH:LINE: ...": as parse_yaml; a key that a recipe does not have; a switch that
// stands twice.
[[nodiscard]] Result<Recipe> parse_recipe(std::string_view text, const std::string& path);
[[nodiscard]] Result<Recipe> load_recipe(const std::string& path);

}  // namespace reckon::kernels
