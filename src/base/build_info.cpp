#include "base/build_info.h"

#include "base/build_info_generated.h"

namespace reckon {

const BuildInfo& build_info() {
  static const BuildInfo info{RECKON_VERSION, kCommit, kDirty, RECKON_COMPILER};
  return info;
}

}  // namespace reckon
