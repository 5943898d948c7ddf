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
  std::string text = std::string(launch.name) + " grid " + size(launch.grid) + " block " +
                     size(launch.block) + " shared " + std::to_string(launch.shared_bytes);
  const KernelResources& resources = launch.resources;
  if (resources.threads_most > 0) {
    text += " registers " + std::to_string(resources.registers) + " local " +
            std::to_string(resources.local_bytes) + " occupancy " +
            std::to_string(100 * resources.threads / resources.threads_most) + "%";
  }
  return text;
}

template <typename T>
void add_distinct(std::vector<T>& known, T value) {
  if (std::ranges::find(known, value) == known.end()) known.push_back(std::move(value));
}

}  // namespace

bool Launch::is_same_as(const Launch& other) const {
  return kernel == other.kernel && std::ranges::equal(grid, other.grid) &&
         std::ranges::equal(block, other.block) && shared_bytes == other.shared_bytes;
}

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

Launch* Trace::note_launch(const Launch& launch) {
  if (last_ == nullptr) return nullptr;
  const auto is_same = [&](const Launch& known) { return known.is_same_as(launch); };
  if (std::ranges::any_of(last_->launches, is_same)) return nullptr;
  return &last_->launches.emplace_back(launch);
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
      add_distinct(sum.launches, launch_text(launch));
      if (launch.resources.threads_most > 0) add_distinct(sum.resources, launch.resources);
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
