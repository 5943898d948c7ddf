// A model.safetensors.index.json, and a config.json of the same text.
#include "formats/block_fp8.h"
#include "formats/hf_config.h"
#include "formats/safetensors_set.h"
#include "fuzz/fuzz.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  const auto index = parse_safetensors_index("index.json", bytes);
  if (accepted(index)) {
    for (const auto& [tensor, file] : *index) {
      RECKON_CHECK(file.find('/') == file.npos && file.ends_with(".safetensors"));
    }
  }
  const auto config = HfConfig::parse("config.json", bytes);
  if (!accepted(config)) return;
  (void)accepted(config->architecture());
  (void)accepted(config->number("rope_theta"));
  (void)accepted(config->integers("a"));
  (void)config->canonical();
  (void)accepted(check_fp8_config(*config));
}

}  // namespace reckon::fuzz
