// The dispatch trace: which variants ran, on which shapes, how often. Rows are stamped inside the
// variants (kernel.h), so that what was observed can contradict what was predicted.
//
// A Trace belongs to one session and is stamped from its thread only. A stamp is one look-up in a
// hash table: about 70 ns between kernels that stream their weights, 0.5 % of a step of 6 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/op.h"
#include "kernels/plan.h"

namespace reckon::kernels {

// One row in text form: what reports, fingerprints and comparisons use. Ordered by its fields.
struct DispatchRow {
  std::string phase;    // "decode"
  std::string op;       // "matmul"
  std::string shape;    // "1x1536x576 q4_1"
  std::string variant;  // "exact_avx2"
  std::string params;   // "tile_order=band8" or ""
  std::string source_hash;

  friend auto operator<=>(const DispatchRow&, const DispatchRow&) = default;
};

// What a kernel takes of a multiprocessor at one launch's block size and shared memory, by the
// device's driver.
struct KernelResources {
  uint32_t registers = 0;     // a thread
  uint32_t local_bytes = 0;   // a thread, in memory: spilled registers and arrays
  uint32_t threads = 0;       // resident at most
  uint32_t threads_most = 0;  // that a multiprocessor has room for; 0: nothing is known

  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

// A kernel launch on a device, as it was made: "gemv_kernel grid 320x1x1 block 256x1x1 shared
// 4096", and what is known of its resources: " registers 128 local 0 occupancy 25%".
struct Launch {
  const void* kernel = nullptr;  // the handle that was launched
  const char* name = "";         // as the runtime knows it; lives as long as the process
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  uint32_t shared_bytes = 0;
  KernelResources resources = {};

  [[nodiscard]] bool is_same_as(const Launch& other) const;  // but for the resources
};

struct TraceCount {
  DispatchRow row;
  uint64_t count = 0;
  std::vector<std::string> launches;       // distinct ones, in the order of their first appearance
  std::vector<KernelResources> resources;  // distinct ones
};

class Trace {
 public:
  void set_phase(Phase phase) { phase_ = phase; }
  [[nodiscard]] Phase phase() const { return phase_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }
  void reset();

  // Called by stamp(): `call.phase` is ignored, the trace's own phase counts. Both texts must
  // live as long as the process.
  void stamp(const char* variant, const char* source_hash, const OpCall& call,
             const KernelParams& params);

  // A launch that the variant stamped last has made. The first of its kind is given back, good
  // until the next call, so that its resources are asked for once; null for the others.
  Launch* note_launch(const Launch& launch);

  // A captured graph carries the rows of its capture, and each replay adds them: what is stamped
  // between begin_capture() and end_capture() is kept for add(), marked as part of a graph.
  struct Captured;
  void begin_capture();
  [[nodiscard]] std::shared_ptr<const Captured> end_capture();
  void add(const Captured& captured);

  [[nodiscard]] std::vector<TraceCount> rows() const;  // sorted by row

 private:
  struct Key {
    OpCall call;
    KernelParams params;
    const char* variant = nullptr;
    const char* source_hash = nullptr;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Entry {
    uint64_t count = 0;
    std::vector<Launch> launches;
  };
  using Entries = std::unordered_map<Key, Entry, KeyHash>;

  Phase phase_ = Phase::kPrefill;
  bool enabled_ = true;
  Entries entries_;
  Entry* last_ = nullptr;              // the entry stamped last
  std::shared_ptr<Captured> capture_;  // while capturing
};

struct Trace::Captured {
  Entries entries;
};

// The row that the plan predicts for a call.
[[nodiscard]] DispatchRow predicted_row(const OpCall& call, const Choice& choice);

// A hash of the sorted, distinct rows, without counts: 16 hexadecimal digits.
[[nodiscard]] std::string fingerprint(std::span<const DispatchRow> rows);

}  // namespace reckon::kernels
