// A file of quantisation rules, asked for a few names.
#include "models/quant_scheme.h"

#include "fuzz/fuzz.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  const auto scheme = models::QuantScheme::parse_rules(bytes, "input.yaml");
  if (!accepted(scheme)) return;
  const std::vector<std::string> names{
      "", "lm_head.weight", "model.layers.10.self_attn.q_proj.weight", std::string(200, 'a')};
  for (const std::string& name : names) (void)scheme->type_of(name);
  (void)scheme->id();
  for (const std::string& line : scheme->unused(names)) {
    RECKON_CHECK(line.find('\n') == line.npos && valid_utf8(line));
  }
}

}  // namespace reckon::fuzz
