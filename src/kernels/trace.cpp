#include "kernels/trace.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "kernels/call.h"

namespace reckon::kernels {

size_t Trace::KeyHash::operator()(const Key& key) const {
  // Two variants rarely run one shape in one phase, so the names' addresses add little.
  return static_cast<size_t>(call_hash(key.call) ^ reinterpret_cast<uintptr_t>(key.variant) ^
                             static_cast<uint64_t>(key.params.tile_order));
}

void Trace::reset() {
  counts_.clear();
}

void Trace::stamp(const char* variant, const char* source_hash, const OpCall& call,
                  const KernelParams& params) {
  if (!enabled_) return;
  Key key{call, params, variant, source_hash};
  key.call.phase = phase_;
  ++counts_[key];
}

std::vector<TraceCount> Trace::rows() const {
  std::map<DispatchRow, uint64_t> sums;
  for (const auto& [key, count] : counts_) {
    sums[{std::string(phase_name(key.call.phase)), std::string(op_name(key.call.op)),
          shape_text(key.call), key.variant, params_text(key.params), key.source_hash}] += count;
  }
  std::vector<TraceCount> rows;
  rows.reserve(sums.size());
  for (const auto& [row, count] : sums) rows.push_back({row, count});
  return rows;
}

DispatchRow predicted_row(const OpCall& call, const Choice& choice) {
  return {std::string(phase_name(call.phase)),
          std::string(op_name(call.op)),
          shape_text(call),
          choice.identity,
          params_text(choice.params),
          choice.variant->source_hash};
}

std::string fingerprint(std::span<const DispatchRow> rows) {
  std::vector<DispatchRow> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Hasher hasher;
  for (const DispatchRow& row : sorted) {
    for (const std::string* field :
         {&row.phase, &row.op, &row.shape, &row.variant, &row.params, &row.source_hash}) {
      hasher.add_field(*field);
    }
  }
  return hasher.hex().substr(0, 16);
}

}  // namespace reckon::kernels
