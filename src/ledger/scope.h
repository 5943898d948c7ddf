// What a result is about, as a structured key. Two experiments repeat each other only where every
// field is equal; nothing is matched by likeness. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon::ledger {

// What the device is, not what it is called: the product name stands beside the scope.
struct DeviceKey {
  std::string vendor;  // "nvidia", "GenuineIntel", "AuthenticAMD", "apple"
  std::string isa;     // "sm_90", or the widest set of the hardware, used or not: "avx2", "avx512"
  int64_t units = 0;   // SMs, GPU cores, or CPU cores that this process may use
  // Rounded to whole GiB, so that a kernel's own reservation does not make another device.
  int64_t memory_gib = 0;
  nlohmann::json extra = nlohmann::json::object();  // as in Scope

  bool operator==(const DeviceKey&) const = default;
};

struct Scope {
  std::string switch_key;  // empty for identical arms
  std::string base_value;
  std::string arm_value;
  DeviceKey device;
  std::string backend;  // "cpu", "cuda", or the name of a foreign runner
  std::string model_family;
  std::string shape_hash;
  std::string model_hash;
  std::string weight_format;
  int64_t chunk = 0;
  int64_t rows = 0;
  int64_t context = 0;
  std::string metric;
  std::string workload_class;  // metric, phase, shape and format, token counts, pairs a round
  std::string prompt_hash;
  std::string tokens_policy;  // "identical" or "may-diverge"
  std::string reach;          // where the arms must differ, such as "moe_matmul/prefill"
  std::string memory_limit;   // empty: the device's own; else bytes, or "plan+" and bytes
  // Every other switch that is set, by key, for each arm.
  std::map<std::string, std::string> base_switches;
  std::map<std::string, std::string> arm_switches;
  // Fields that a newer Reckon wrote; they count in equality and in the hash.
  nlohmann::json extra = nlohmann::json::object();

  bool operator==(const Scope&) const = default;
};

// The canonical form: every field, always. Reading takes absent fields as empty (imported entries
// know little); errors name the field.
[[nodiscard]] nlohmann::json scope_to_json(const Scope& scope);
[[nodiscard]] Result<Scope> scope_from_json(const nlohmann::json& json);

// 16 base-32 characters; equal scopes have equal ids.
[[nodiscard]] std::string scope_id(const Scope& scope);

struct ScopeDifference {
  std::string field;  // dotted: "device.units", "arm_switches.prefill.chunk"
  std::string a;      // "" where the field is absent
  std::string b;

  bool operator==(const ScopeDifference&) const = default;
};

// Field by field, in field order; empty exactly where a == b.
[[nodiscard]] std::vector<ScopeDifference> differences(const Scope& a, const Scope& b);

// The scope as one text, for an index to rank scopes by: differing_fields of two of them is the
// number of their differences.
[[nodiscard]] std::string flat_scope(const Scope& scope);
[[nodiscard]] size_t differing_fields(std::string_view flat_a, std::string_view flat_b);

}  // namespace reckon::ledger
