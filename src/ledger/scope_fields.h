// Private to the module: the JSON fields of a scope (codec.h).
#pragma once

#include "ledger/codec.h"
#include "ledger/scope.h"

namespace reckon::ledger {

template <typename Fields>
void describe(Fields& fields, codec::Like<DeviceKey> auto& device) {
  fields("vendor", device.vendor);
  fields("isa", device.isa);
  fields("units", device.units);
  fields("memory_gib", device.memory_gib);
  fields.rest(device.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Scope> auto& scope) {
  fields("switch", scope.switch_key);
  fields("base", scope.base_value);
  fields("arm", scope.arm_value);
  fields("device", scope.device);
  fields("backend", scope.backend);
  fields("model_family", scope.model_family);
  fields("shape_hash", scope.shape_hash);
  fields("model_hash", scope.model_hash);
  fields("weight_format", scope.weight_format);
  fields("chunk", scope.chunk);
  fields("rows", scope.rows);
  fields("context", scope.context);
  fields("metric", scope.metric);
  fields("workload_class", scope.workload_class);
  fields("prompt_hash", scope.prompt_hash);
  fields("tokens_policy", scope.tokens_policy);
  fields("reach", scope.reach);
  fields("memory_limit", scope.memory_limit);
  fields("base_switches", scope.base_switches);
  fields("arm_switches", scope.arm_switches);
  fields.rest(scope.extra);
}

}  // namespace reckon::ledger
