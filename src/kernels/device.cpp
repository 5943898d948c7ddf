#include "kernels/device.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/text.h"
#include "base/thread_pool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace reckon::kernels {
namespace {

#if defined(__x86_64__)

// Which register state the operating system saves (XGETBV, Intel SDM volume 1, chapter 13).
uint64_t saved_state() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Sorted names of the instruction sets that kernels use or a verdict may depend on, each only where
// the operating system supports it, too.
std::vector<std::string> instruction_sets() {
  struct Registers {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  };
  const auto leaf = [](uint32_t function, uint32_t part) {
    Registers r;
    return __get_cpuid_count(function, part, &r.eax, &r.ebx, &r.ecx, &r.edx) != 0 ? r : Registers{};
  };
  const Registers basic = leaf(1, 0), extended = leaf(7, 0), further = leaf(7, 1);
  constexpr uint64_t kYmm = 0x6, kZmm = 0xE6, kTiles = 0x60000;
  const bool saves = (basic.ecx & bit_OSXSAVE) != 0;
  const uint64_t state = saves ? saved_state() : 0;
  const struct {
    const char* name;
    uint32_t word;
    int bit;
    uint64_t needs_state;
  } sets[] = {
      {"amx_bf16", extended.edx, 22, kTiles}, {"amx_int8", extended.edx, 25, kTiles},
      {"avx2", extended.ebx, 5, kYmm},        {"avx512bf16", further.eax, 5, kZmm},
      {"avx512bw", extended.ebx, 30, kZmm},   {"avx512f", extended.ebx, 16, kZmm},
      {"avx512vl", extended.ebx, 31, kZmm},   {"avx512vnni", extended.ecx, 11, kZmm},
      {"avxvnni", further.eax, 4, kYmm},      {"f16c", basic.ecx, 29, kYmm},
      {"fma", basic.ecx, 12, kYmm},
  };
  std::vector<std::string> names;
  for (const auto& set : sets) {
    if ((set.word >> set.bit & 1U) != 0 && (state & set.needs_state) == set.needs_state) {
      names.emplace_back(set.name);
    }
  }
  return names;
}

#else

std::vector<std::string> instruction_sets() {
  return {};
}

#endif

// Tile registers have to be asked for, once a process (Linux, Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// What files compiled for an instruction set may use (cmake/modules.cmake).
Isa widest(const std::vector<std::string>& sets) {
  const auto has = [&](const char* name) {
    return std::find(sets.begin(), sets.end(), name) != sets.end();
  };
  if (!has("avx2") || !has("fma") || !has("f16c")) return Isa::kScalar;
  for (const char* name : {"avx512f", "avx512bw", "avx512vl", "avx512vnni"}) {
    if (!has(name)) return Isa::kAvx2;
  }
  for (const char* name : {"amx_bf16", "amx_int8", "avx512bf16"}) {
    if (!has(name)) return Isa::kAvx512;
  }
  return may_use_tiles() ? Isa::kAmx : Isa::kAvx512;
}

// What /proc/cpuinfo says of the first processor, or "unknown".
std::string cpuinfo_value(const std::string& key) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown";
}

}  // namespace

Device detect_cpu() {
  const std::vector<std::string> sets = instruction_sets();
  Device device;
  device.name = cpuinfo_value("model name");
  device.vendor = cpuinfo_value("vendor_id");
  device.backend = "cpu";
  device.best_isa = widest(sets);
  device.features = join(sets, " ");
  device.cores = ThreadPool::available_cores();
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    device.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  return device;
}

}  // namespace reckon::kernels
