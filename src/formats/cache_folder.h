// Where Reckon keeps what it can make again: hashes of model files and packed weights.
#pragma once

#include <string>

namespace reckon {

// $RECKON_CACHE, else $XDG_CACHE_HOME/reckon, else ~/.cache/reckon; only absolute paths count. ""
// where there is none. The folder need not be there.
[[nodiscard]] std::string cache_folder();

}  // namespace reckon
