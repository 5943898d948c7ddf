// Tile rules: which tile shape a prefill matmul gets, with the conditions that the rules were tuned
// under. `reckon tune` writes such a file (docs/tuning.md):
//
//   name: cpu-amx-2
//   date: 2026-11-30
//   ledger: rk-…                # the sweep's entry, or unmeasured
//   when: {backend: cpu, device.vendor: GenuineIntel, device.isa: amx, device.units: 2}
//   chunks: [128, 512, 2048]
//   shapes:                     # that were tuned
//     - {op: matmul, type: q4_0, n: 8192, k: 2048}
//   rules:                      # the first that fits decides; a call that none fits: the kernel
//     - {op: matmul, type: q4_0, n: 2048.., k: 1.., rows: 512.., tile: wide}
//
// Outside its conditions a file still answers, and says what is outside. Immutable and thread-safe
// once made.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/device.h"
#include "kernels/op.h"

namespace reckon::kernels {

// Whole numbers, both ends included: "512..2048", "512..", "512".
struct NumberRange {
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
  int64_t low = 1;
  int64_t high = kNoEnd;

  [[nodiscard]] bool contains(int64_t value) const { return value >= low && value <= high; }
  [[nodiscard]] std::string text() const;
  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

struct TileRule {
  Op op = Op::kMatmul;
  std::optional<DType> type;  // of the weight; unset: any
  NumberRange n, k, rows;
  TileShape tile = TileShape::kSquare;

  [[nodiscard]] bool fits(const OpCall& call) const;
  [[nodiscard]] std::string text() const;  // "matmul q4_0 n=2048.. rows=512.."
  friend bool operator==(const TileRule&, const TileRule&) = default;
};

struct TunedShape {
  Op op = Op::kMatmul;
  DType type = static_cast<DType>(0);
  int64_t n = 0, k = 0;

  friend bool operator==(const TunedShape&, const TunedShape&) = default;
};

// What a device must have in common with the one that rules were tuned on.
struct TileDevice {
  std::string backend, vendor;
  std::string isa;    // the widest of a CPU ("amx"); a GPU's features ("sm_90")
  int64_t units = 0;  // a CPU's threads that kernels run on; a GPU's multiprocessors

  friend bool operator==(const TileDevice&, const TileDevice&) = default;
};
[[nodiscard]] TileDevice tile_device(const Device& device, int threads);

struct TileRules {
  std::string name;
  std::string date;    // as written
  std::string ledger;  // an entry's id or "unmeasured"
  TileDevice device;
  std::vector<int64_t> chunks;
  std::vector<TunedShape> shapes;
  std::vector<TileRule> rules;
  // The rest is no part of the file.
  std::string path;          // "" of a shipped one
  std::string content_hash;  // of the file's text

  // The first rule that fits, counted from 1, or 0.
  [[nodiscard]] size_t find(const OpCall& call) const;
  // Which conditions the call does not meet, one line: "chunk 2048 (tuned at 128), n=100 (tuned at
  // 576 to 1536)"; "" where it meets all. `chunk`: the tokens of a full prefill pass, of which the
  // call may have fewer.
  [[nodiscard]] std::string outside(const OpCall& call, int64_t chunk, const TileDevice& now) const;
};

// Usage errors "PATH:LINE: …" name the key and what was expected.
[[nodiscard]] Result<TileRules> parse_tile_rules(std::string_view text, const std::string& path);
// Likewise "PATH: …" where it is no file that can be read.
[[nodiscard]] Result<std::shared_ptr<const TileRules>> load_tile_rules(const std::string& path);
// The file's text, `comment` above it (its lines without #): what parse_tile_rules() reads back.
[[nodiscard]] std::string tile_rules_text(const TileRules& rules, const std::string& comment);

// Those that were compiled in (rules/*.yaml that begin with a backend's name), by name.
[[nodiscard]] const std::vector<std::shared_ptr<const TileRules>>& shipped_tile_rules();
// The shipped ones for a device: of its backend, those of its class before others; null: none.
[[nodiscard]] std::shared_ptr<const TileRules> shipped_tile_rules_for(const TileDevice& device);

}  // namespace reckon::kernels
