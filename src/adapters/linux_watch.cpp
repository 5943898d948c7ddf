#include "adapters/linux_watch.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/text.h"

namespace reckon::adapters {
namespace {

constexpr double kShortestSeconds = 0.25;
constexpr const char* kCpuFolder = "/sys/devices/system/cpu";

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The whole numbers of a line, up to the first word that is none.
std::vector<int64_t> numbers_of(std::string_view line) {
  std::vector<int64_t> numbers;
  for (const std::string& word : split(std::string(line), ' ')) {
    if (word.empty()) continue;
    int64_t value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || stop != end) break;
    numbers.push_back(value);
  }
  return numbers;
}

std::optional<int64_t> number_in(const std::filesystem::path& path) {
  std::string text = read_all(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::vector<int64_t> numbers = numbers_of(text);
  if (numbers.empty()) return std::nullopt;
  return numbers.front();
}

std::set<int> usable_processors() {
  std::set<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.insert(i);
  }
  return processors;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double usage_seconds(int who) {
  rusage usage{};
  if (getrusage(who, &usage) != 0) return 0;
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// CPU seconds of this process, of its children that ended, and of `child`.
double own_seconds(pid_t child) {
  double seconds = usage_seconds(RUSAGE_SELF) + usage_seconds(RUSAGE_CHILDREN);
  if (child < 0) return seconds;
  const auto ticks = parse_process_ticks(read_all(fmt::format("/proc/{}/stat", child)));
  return seconds +
         static_cast<double>(ticks.value_or(0)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Times that any of the processors was throttled; unset where none says.
std::optional<int64_t> throttle_count(const std::set<int>& processors) {
  std::optional<int64_t> count;
  for (const int i : processors) {
    const auto one =
        number_in(fmt::format("{}/cpu{}/thermal_throttle/core_throttle_count", kCpuFolder, i));
    if (one) count = count.value_or(0) + *one;
  }
  return count;
}

// The fastest processor's clock, of its highest; unset where none says.
std::optional<double> clock_share(const std::set<int>& processors) {
  std::optional<double> share;
  for (const int i : processors) {
    const std::string folder = fmt::format("{}/cpu{}/cpufreq", kCpuFolder, i);
    const auto now = number_in(folder + "/scaling_cur_freq");
    const auto most = number_in(folder + "/cpuinfo_max_freq");
    if (!now || !most || *most <= 0) continue;
    share = std::max(share.value_or(0), static_cast<double>(*now) / static_cast<double>(*most));
  }
  return share;
}

class LinuxWatch final : public experiment::MachineWatch {
 public:
  LinuxWatch() : processors_(usable_processors()), last_(read(-1)) {}

  std::optional<experiment::MachineWindow> look(pid_t child) override {
    const Reading now = read(child);
    experiment::MachineWindow window;
    window.seconds = std::chrono::duration<double>(now.time - last_.time).count();
    if (window.seconds < kShortestSeconds) return std::nullopt;
    if (now.ticks && last_.ticks && now.ticks->total > last_.ticks->total) {
      const auto total = static_cast<double>(now.ticks->total - last_.ticks->total);
      const auto busy = static_cast<double>(now.ticks->busy - last_.ticks->busy);
      const double own = (now.own - last_.own) * static_cast<double>(sysconf(_SC_CLK_TCK));
      window.other_share = std::clamp((busy - own) / total, 0.0, 1.0);
      window.stolen_share = static_cast<double>(now.ticks->stolen - last_.ticks->stolen) / total;
    }
    if (now.throttled && last_.throttled) window.throttled = *now.throttled - *last_.throttled;
    window.clock_share = clock_share(processors_);
    last_ = now;
    return window;
  }

 private:
  struct Reading {
    std::chrono::steady_clock::time_point time;
    std::optional<CpuTicks> ticks;
    std::optional<int64_t> throttled;
    double own = 0;  // seconds
  };
  [[nodiscard]] Reading read(pid_t child) const {
    Reading reading;
    reading.time = std::chrono::steady_clock::now();
    reading.ticks = parse_cpu_ticks(read_all("/proc/stat"), processors_);
    reading.throttled = throttle_count(processors_);
    reading.own = own_seconds(child);
    return reading;
  }

  std::set<int> processors_;
  Reading last_;
};

}  // namespace

std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat, const std::set<int>& processors) {
  std::optional<CpuTicks> sum;
  for (const std::string& line : split(std::string(stat), '\n')) {
    if (!line.starts_with("cpu")) continue;
    const size_t space = line.find(' ');
    const std::vector<int64_t> number = numbers_of(line.substr(3, space - 3));
    if (number.empty() || !processors.contains(static_cast<int>(number.front()))) continue;
    // user nice system idle iowait irq softirq steal; guest time is in user and nice already
    std::vector<int64_t> ticks = numbers_of(line.substr(space + 1));
    if (ticks.size() < 4) continue;
    ticks.resize(8);
    if (!sum) sum.emplace();
    const int64_t busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    sum->busy += busy;
    sum->stolen += ticks[7];
    sum->total += busy + ticks[3] + ticks[4] + ticks[7];
  }
  return sum;
}

std::optional<int64_t> parse_process_ticks(std::string_view stat) {
  // "PID (NAME) STATE …": the name may hold anything, so count from its last bracket.
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string_view::npos || bracket + 4 > stat.size()) return std::nullopt;
  const std::vector<int64_t> numbers = numbers_of(stat.substr(bracket + 4));
  constexpr size_t kUserTime = 10;  // field 14, counted from field 4
  if (numbers.size() < kUserTime + 4) return std::nullopt;
  return numbers[kUserTime] + numbers[kUserTime + 1] + numbers[kUserTime + 2] +
         numbers[kUserTime + 3];
}

std::unique_ptr<experiment::MachineWatch> open_machine_watch() {
  return std::make_unique<LinuxWatch>();
}

}  // namespace reckon::adapters
