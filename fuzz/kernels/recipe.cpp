// A recipe, applied to two devices: what it sets is then what it says.
#include "kernels/recipe.h"

#include "fuzz/fuzz.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  const auto recipe = kernels::parse_recipe(bytes, "input.yaml");
  if (!accepted(recipe)) return;
  for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAmx}) {
    kernels::Device device;
    device.backend = "cpu";
    device.best_isa = isa;
    kernels::SwitchSet switches;
    const Status applied = recipe->apply(device, switches);
    if (!applied.ok()) {
      RECKON_CHECK(applied.error().message.find('\n') == std::string::npos);
      continue;
    }
    for (const auto& setting : recipe->settings) {
      RECKON_CHECK(switches.get(setting.key) == setting.value);
    }
  }
}

}  // namespace reckon::fuzz
