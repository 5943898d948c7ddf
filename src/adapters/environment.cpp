#include "adapters/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/build_info.h"

namespace reckon::adapters {
namespace {

// The first line of a small system file, or "".
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string clock_mhz() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("cpu MHz", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "";
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
  add("cpu_mhz", clock_mhz());
  add("cpu_governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("temperature_c", temperature());
  add("container_memory_max", first_line("/sys/fs/cgroup/memory.max"));
  add("container_cpu_max", first_line("/sys/fs/cgroup/cpu.max"));
  add("cpu_features", device.features);
  const BuildInfo& build = build_info();
  return {{"device_name", device.name}, {"driver", ""},
          {"kernel", kernel_release()}, {"compiler", build.compiler},
          {"commit", build.commit},     {"dirty", build.dirty},
          {"readings", readings},       {"facts", nlohmann::json::object()}};
}

}  // namespace reckon::adapters
