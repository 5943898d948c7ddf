#include "cli/tune_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace reckon::cli {
namespace {

using kernels::NumberRange;
using kernels::TileRule;
using kernels::TileShape;

// Covers beyond this many are not looked at: the greedy one is taken, which is as good in practice.
constexpr int kMostCovers = 200000;

double loss_of(const TunedCall& call, TileShape tile) {
  const auto found = call.losses.find(tile);
  return found == call.losses.end() ? std::numeric_limits<double>::infinity() : found->second;
}

bool accepts(const TunedCall& call, TileShape tile) {
  return loss_of(call, tile) <= std::log1p(kTuneTolerance);
}

// A rule with what it covers, as indices of calls.
struct Box {
  TileRule rule;
  TileShape tile = TileShape::kAuto;  // as losses have it
  std::vector<size_t> covers;
};

// Every range from one measured value to another, each reaching up to the next one.
std::vector<NumberRange> ranges_of(const std::set<int64_t>& values) {
  const std::vector<int64_t> sorted(values.begin(), values.end());
  std::vector<NumberRange> ranges;
  for (size_t first = 0; first < sorted.size(); ++first) {
    for (size_t last = first; last < sorted.size(); ++last) {
      NumberRange range;
      range.low = first == 0 ? 1 : sorted[first];
      if (last + 1 < sorted.size()) range.high = sorted[last + 1] - 1;
      ranges.push_back(range);
    }
  }
  return ranges;
}

class Derivation {
 public:
  Derivation(std::span<const TunedCall> calls, kernels::Op op, TileShape own)
      : calls_(calls), op_(op), own_(own) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].call.op == op) of_op_.push_back(i);
    }
    add_boxes();
  }

  [[nodiscard]] std::vector<TileRule> rules() {
    std::optional<std::vector<TileRule>> best;
    double best_loss = 0;
    std::set<TileShape> tiles{TileShape::kAuto};
    for (const size_t i : of_op_) {
      for (const auto& [tile, loss] : calls_[i].losses) tiles.insert(tile);
    }
    for (const TileShape rest : tiles) {
      std::vector<TileRule> found = exceptions_to(rest);
      if (rest != TileShape::kAuto) found.push_back(rule_of({}, {}, {}, std::nullopt, rest));
      const double loss = total_loss(found);
      if (best &&
          (found.size() > best->size() || (found.size() == best->size() && loss >= best_loss)))
        continue;
      best = std::move(found);
      best_loss = loss;
    }
    return *best;
  }

 private:
  [[nodiscard]] TileRule rule_of(const NumberRange& n, const NumberRange& k,
                                 const NumberRange& rows, std::optional<DType> type,
                                 TileShape tile) const {
    return {op_, type, n, k, rows, tile == TileShape::kAuto ? own_ : tile};
  }

  void add_boxes() {
    std::set<int64_t> n, k, rows;
    std::set<std::optional<DType>> types{std::nullopt};
    for (const size_t i : of_op_) {
      const kernels::OpCall& call = calls_[i].call;
      n.insert(call.n);
      k.insert(call.k);
      rows.insert(call.rows);
      types.insert(call.weight_type);
    }
    for (const auto& type : types) {
      for (const NumberRange& n_range : ranges_of(n)) {
        for (const NumberRange& k_range : ranges_of(k)) {
          for (const NumberRange& row_range : ranges_of(rows)) {
            add_box(rule_of(n_range, k_range, row_range, type, TileShape::kAuto));
          }
        }
      }
    }
  }

  // With each tile that all of its calls accept, unless an earlier box covers the same.
  void add_box(const TileRule& shape) {
    std::vector<size_t> covers;
    for (const size_t i : of_op_) {
      if (shape.fits(calls_[i].call)) covers.push_back(i);
    }
    if (covers.empty() || !covers_seen_.insert(covers).second) return;
    for (const auto& [tile, unused] : calls_[covers.front()].losses) {
      const bool all = std::ranges::all_of(
          covers, [&, tile = tile](size_t i) { return accepts(calls_[i], tile); });
      if (!all) continue;
      Box box{shape, tile, covers};
      box.rule.tile = tile == TileShape::kAuto ? own_ : tile;
      boxes_.push_back(std::move(box));
    }
  }

  // The fewest boxes that cover every call that does not accept `rest`.
  [[nodiscard]] std::vector<TileRule> exceptions_to(TileShape rest) {
    std::vector<size_t> open;
    for (const size_t i : of_op_) {
      if (!accepts(calls_[i], rest)) open.push_back(i);
    }
    best_ = greedy(open);
    looked_at_ = 0;
    rest_ = rest;
    std::vector<const Box*> chosen;
    best_loss_ = loss_with(best_);
    search(open, chosen);
    std::vector<TileRule> rules;
    for (const Box* box : best_) rules.push_back(box->rule);
    return rules;
  }

  [[nodiscard]] std::vector<const Box*> greedy(std::vector<size_t> open) const {
    std::vector<const Box*> chosen;
    while (!open.empty()) {
      const Box& box = *std::ranges::min_element(
          boxes_, {}, [&](const Box& candidate) { return without(open, candidate).size(); });
      open = without(open, box);
      chosen.push_back(&box);
    }
    return chosen;
  }

  static std::vector<size_t> without(const std::vector<size_t>& open, const Box& box) {
    std::vector<size_t> rest;
    std::ranges::set_difference(open, box.covers, std::back_inserter(rest));
    return rest;
  }

  void search(const std::vector<size_t>& open, std::vector<const Box*>& chosen) {
    if (++looked_at_ > kMostCovers || chosen.size() > best_.size()) return;
    if (open.empty()) {
      const double loss = loss_with(chosen);
      if (chosen.size() < best_.size() || loss < best_loss_) {
        best_ = chosen;
        best_loss_ = loss;
      }
      return;
    }
    if (chosen.size() >= best_.size()) return;
    for (const Box& box : boxes_) {
      if (!std::ranges::binary_search(box.covers, open.front())) continue;
      chosen.push_back(&box);
      search(without(open, box), chosen);
      chosen.pop_back();
    }
  }

  // Of all calls, where the boxes decide in this order and `rest_` for what they leave.
  [[nodiscard]] double loss_with(const std::vector<const Box*>& chosen) const {
    double loss = 0;
    for (const size_t i : of_op_) {
      const auto box = std::ranges::find_if(
          chosen, [&](const Box* one) { return std::ranges::binary_search(one->covers, i); });
      loss += loss_of(calls_[i], box == chosen.end() ? rest_ : (*box)->tile);
    }
    return loss;
  }

  [[nodiscard]] double total_loss(const std::vector<TileRule>& rules) const {
    double loss = 0;
    for (const size_t i : of_op_) loss += loss_of(calls_[i], tile_of(rules, calls_[i].call, own_));
    return loss;
  }

  std::span<const TunedCall> calls_;
  kernels::Op op_;
  TileShape own_;
  std::vector<size_t> of_op_;  // ascending
  std::vector<Box> boxes_;
  std::set<std::vector<size_t>> covers_seen_;
  std::vector<const Box*> best_;
  double best_loss_ = 0;
  TileShape rest_ = TileShape::kAuto;
  int looked_at_ = 0;
};

}  // namespace

TileShape tile_of(std::span<const TileRule> rules, const kernels::OpCall& call, TileShape own) {
  for (const TileRule& rule : rules) {
    if (rule.fits(call)) return rule.tile == own ? TileShape::kAuto : rule.tile;
  }
  return TileShape::kAuto;
}

std::vector<TileRule> derive_tile_rules(std::span<const TunedCall> calls, TileShape own) {
  std::set<kernels::Op> ops;
  for (const TunedCall& call : calls) ops.insert(call.call.op);
  std::vector<TileRule> rules;
  for (const kernels::Op op : ops) {
    for (TileRule& rule : Derivation(calls, op, own).rules()) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace reckon::cli
