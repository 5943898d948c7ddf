#include "kernels/trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

std::string launch_text(const Launch& launch) {
  const auto size = [](const uint32_t* d) {
    return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
  };
  return std::string(launch.name) + " grid " + size(launch.grid) + " block " + size(launch.block) +
         " shared " + std::to_string(launch.shared_bytes);
}

}  // namespace

size_t Trace::KeyHash::operator()(const Key& key) const {
  // Two variants rarely run one shape in one phase, so the names' addresses add little.
  return static_cast<size_t>(call_hash(key.call) ^ reinterpret_cast<uintptr_t>(key.variant) ^
                             static_cast<uint64_t>(key.params.tile_order));
}

void Trace::reset() {
  entries_.clear();
  last_ = nullptr;
}

void Trace::stamp(const char* variant, const char* source_hash, const OpCall& call,
                  const KernelParams& params) {
  if (!enabled_ && capture_ == nullptr) return;
  Key key{call, params, variant, source_hash};
  key.call.phase = phase_;
  key.params.graph = capture_ != nullptr;
  last_ = &(capture_ == nullptr ? entries_ : capture_->entries)[key];
  ++last_->count;
}

void Trace::note_launch(const Launch& launch) {
  if (last_ == nullptr) return;
  auto& launches = last_->launches;
  if (std::find(launches.begin(), launches.end(), launch) == launches.end()) {
    launches.push_back(launch);
  }
}

void Trace::begin_capture() {
  capture_ = std::make_shared<Captured>();
  last_ = nullptr;
}

std::shared_ptr<const Trace::Captured> Trace::end_capture() {
  last_ = nullptr;
  return std::exchange(capture_, nullptr);
}

void Trace::add(const Captured& captured) {
  if (!enabled_) return;
  for (const auto& [key, entry] : captured.entries) {
    Entry& sum = entries_[key];
    sum.count += entry.count;
    if (sum.launches.empty()) sum.launches = entry.launches;
  }
}

std::vector<TraceCount> Trace::rows() const {
  std::map<DispatchRow, TraceCount> sums;
  for (const auto& [key, entry] : entries_) {
    TraceCount& sum =
        sums[{std::string(phase_name(key.call.phase)), std::string(op_name(key.call.op)),
              shape_text(key.call), key.variant, params_text(key.params), key.source_hash}];
    sum.count += entry.count;
    for (const Launch& launch : entry.launches) {
      std::string text = launch_text(launch);
      if (std::find(sum.launches.begin(), sum.launches.end(), text) == sum.launches.end()) {
        sum.launches.push_back(std::move(text));
      }
    }
  }
  std::vector<TraceCount> rows;
  rows.reserve(sums.size());
  for (auto& [row, count] : sums) {
    count.row = row;
    rows.push_back(std::move(count));
  }
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
