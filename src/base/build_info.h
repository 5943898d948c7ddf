// What this binary was built from; part of every environment record.
#pragma once

#include <string>

namespace reckon {

struct BuildInfo {
  std::string version;   // "0.1.0"
  std::string commit;    // twelve digits, or "unknown"
  bool dirty = false;    // sources differed from the commit when this was built
  std::string compiler;  // "GNU 12.2.0"
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace reckon
