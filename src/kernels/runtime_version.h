// The version of what a backend's kernels run on. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace reckon::kernels {

// Of "cuda" that of the CUDA runtime which this build is linked with, "13.0"; "" of every other.
[[nodiscard]] std::string runtime_version(std::string_view backend);

}  // namespace reckon::kernels
