// The table of backends. CUDA is in it where the build has it (cmake/modules.cmake).
#include <array>
#include <mutex>

#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/cuda/open.h"
#include "kernels/runtime_version.h"

namespace reckon::kernels {
namespace {

struct BackendRow {
  std::string_view name;
  Result<Backend*> (*open)();
};

constexpr BackendRow kBackends[] = {
    {"cpu", []() -> Result<Backend*> { return &cpu_backend(); }},
#if RECKON_CUDA
    {"cuda", cuda::open_backend},
#endif
};

}  // namespace

Result<std::vector<Bound>> Backend::measure_bounds(const BoundsOptions& /*options*/) {
  return failed("the " + device().backend + " backend cannot measure its bounds");
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendRow& row : kBackends) names.emplace_back(row.name);
  return names;
}

Result<Backend*> open_backend(std::string_view name) {
  for (const BackendRow& row : kBackends) {
    if (row.name == name) return row.open();
  }
  std::string message = "no backend is called '" + std::string(name) + "'; this build has " +
                        join(backend_names(), ", ");
  if (name == "cuda") message += " (the cuda preset builds it where nvcc is)";
  return usage_error(message);
}

std::string runtime_version(std::string_view backend) {
#if RECKON_CUDA
  if (backend == "cuda") return cuda::runtime_version();
#endif
  (void)backend;
  return "";
}

}  // namespace reckon::kernels
