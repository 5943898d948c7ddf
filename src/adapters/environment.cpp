#include "adapters/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/build_info.h"
#include "kernels/runtime_version.h"

namespace reckon::adapters {
namespace {

// The first line of a small system file, or "".
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The hottest thermal zone in degrees Celsius, or "".
std::string temperature() {
  double hottest = -1;
  std::error_code error;
  for (const auto& zone : std::filesystem::directory_iterator("/sys/class/thermal", error)) {
    const std::string text = first_line(zone.path() / "temp");
    char* end = nullptr;
    const double milli = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && milli / 1000 > hottest) hottest = milli / 1000;
  }
  return hottest < 0 ? "" : fmt::format("{:.1f}", hottest);
}

// Of a GPU's: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65  …", or "".
std::string driver_of(const kernels::Device& device) {
  return device.backend == "cpu" ? "" : first_line("/proc/driver/nvidia/version");
}

// "min 2000, max 3500", over all cores now; "" where no core says.
std::string clocks_mhz() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  double slowest = 0;
  double fastest = 0;
  while (std::getline(file, line)) {
    if (!line.starts_with("cpu MHz")) continue;
    const double mhz = std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    slowest = fastest == 0 ? mhz : std::min(slowest, mhz);
    fastest = std::max(fastest, mhz);
  }
  return fastest == 0 ? "" : fmt::format("{:.0f} to {:.0f}", slowest, fastest);
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "";
}

}  // namespace

nlohmann::json environment_record(const kernels::Device& device) {
  nlohmann::json readings = nlohmann::json::object();
  const auto add = [&readings](const char* name, const std::string& value) {
    if (!value.empty()) readings[name] = value;
  };
  add("load_average", first_line("/proc/loadavg"));
  add("cpu_mhz", clocks_mhz());
  add("cpu_governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("temperature_c", temperature());
  add("container_memory_max", first_line("/sys/fs/cgroup/memory.max"));
  add("container_cpu_max", first_line("/sys/fs/cgroup/cpu.max"));
  add("cpu_max_khz", first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
  add("cpu_throttled",
      first_line("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"));
  add("cuda_version", kernels::runtime_version(device.backend));
  add("device_vendor", device.vendor);
  add(device.backend == "cpu" ? "cpu_features" : "device_features", device.features);
  add("device_cores", std::to_string(device.cores));
  add("device_memory_bytes", std::to_string(device.memory_bytes));
  const BuildInfo& build = build_info();
  return {{"device_name", device.name}, {"driver", driver_of(device)}, {"kernel", kernel_release()},
          {"compiler", build.compiler}, {"commit", build.commit},      {"dirty", build.dirty},
          {"readings", readings}};
}

}  // namespace reckon::adapters
