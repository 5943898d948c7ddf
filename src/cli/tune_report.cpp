#include "cli/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes.h"
#include "base/figures.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "cli/tune_rules.h"
#include "kernels/cost.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::cli {
namespace {

using kernels::TileShape;

// Of the highest rate of multiply-adds; unset where none was measured.
std::optional<double> share_of(const TuneResult& result, const TunedCell& cell,
                               const TileTime& time) {
  const kernels::Bound* multiply = best_bound(result.bounds, kernels::BoundKind::kMultiply);
  if (multiply == nullptr || time.ms <= 0) return std::nullopt;
  const auto operations = static_cast<double>(call_cost(cell.call, 0).operations);
  return operations / (time.ms * 1e-3) / multiply->value;
}

const TileTime* time_of(const TunedCell& cell, TileShape tile) {
  const auto found = std::ranges::find(cell.tiles, tile, &TileTime::tile);
  return found == cell.tiles.end() ? nullptr : &*found;
}

// The tiles of any cell, the kernel's own first.
std::vector<TileShape> tiles_of(const Sweep& sweep) {
  std::set<TileShape> tiles;
  for (const TunedCell& cell : sweep.cells) {
    for (const TileTime& time : cell.tiles) tiles.insert(time.tile);
  }
  return {tiles.begin(), tiles.end()};
}

std::string weight_text(const kernels::OpCall& call) {
  return fmt::format("{}x{} {}", call.n, call.k, dtype_name(call.weight_type));
}

}  // namespace

std::string tile_name(const Sweep& sweep, TileShape tile) {
  return std::string(tile_shape_name(tile == TileShape::kAuto ? sweep.own : tile));
}

Table tune_table(const TuneResult& result, bool bold) {
  const std::vector<TileShape> tiles = tiles_of(result.sweep);
  std::vector<Table::Column> columns{{"weight"}, {"rows", Align::kRight}};
  for (const TileShape tile : tiles) {
    columns.push_back({tile_name(result.sweep, tile) + " ms", Align::kRight});
  }
  columns.push_back({"best"});
  for (const char* title : {"gain", "of bound", "scratch"}) {
    columns.push_back({title, Align::kRight});
  }
  Table table(std::move(columns));
  for (const TunedCell& cell : result.sweep.cells) {
    const TileTime& best = cell.best();
    std::vector<std::string> cells{weight_text(cell.call), std::to_string(cell.call.rows)};
    for (const TileShape tile : tiles) {
      const TileTime* time = time_of(cell, tile);
      std::string text = time == nullptr ? "" : fmt::format("{:.4g}", time->ms);
      cells.push_back(bold && time == &best ? styled(text, Style::kBold, stdout) : text);
    }
    cells.push_back(tile_name(result.sweep, best.tile));
    cells.push_back(signed_share_text(std::expm1(best.gain)));
    const std::optional<double> share = share_of(result, cell, best);
    cells.push_back(share ? fmt::format("{:.1f} %", 100 * *share) : "");
    cells.push_back(format_bytes_short(best.scratch_bytes));
    table.add(std::move(cells));
  }
  return table;
}

std::vector<std::string> cell_lines(const TuneResult& result) {
  std::vector<std::string> lines;
  for (const TunedCell& cell : result.sweep.cells) {
    std::vector<std::string> times;
    for (const TileTime& time : cell.tiles) {
      times.push_back(fmt::format("{} {:.4g}", tile_name(result.sweep, time.tile), time.ms));
    }
    lines.push_back(fmt::format("{} rows={}: {} ms; {} {}", weight_text(cell.call), cell.call.rows,
                                join(times, ", "), tile_name(result.sweep, cell.best().tile),
                                signed_share_text(std::expm1(cell.best().gain))));
  }
  return lines;
}

double largest_loss(const TuneResult& result) {
  double loss = 0;
  for (const TunedCell& cell : result.sweep.cells) {
    loss = std::max(loss, cell.losses().at(tile_of(result.rules, cell.call, result.sweep.own)));
  }
  return std::expm1(loss);
}

std::vector<std::string> rule_lines(const TuneResult& result) {
  std::vector<std::string> lines;
  for (const kernels::TileRule& rule : result.rules) {
    lines.push_back(fmt::format("{}: {}", rule.text(), tile_shape_name(rule.tile)));
  }
  return lines;
}

nlohmann::json cells_json(const TuneResult& result) {
  nlohmann::json cells = nlohmann::json::array();
  for (const TunedCell& cell : result.sweep.cells) {
    nlohmann::json tiles = nlohmann::json::array();
    for (const TileTime& time : cell.tiles) {
      nlohmann::json tile = {{"tile", tile_name(result.sweep, time.tile)},
                             {"ms", time.ms},
                             {"gain", std::expm1(time.gain)},
                             {"scratch_bytes", time.scratch_bytes}};
      if (const auto share = share_of(result, cell, time)) tile["multiply_share"] = *share;
      for (const measure::Pair& pair : time.pairs) {
        tile["pairs"].push_back({{"base_ms", pair.base},
                                 {"arm_ms", pair.arm},
                                 {"arm_first", pair.order == measure::Order::kArmFirst},
                                 {"warmup", pair.warmup}});
      }
      tiles.push_back(std::move(tile));
    }
    cells.push_back(
        {{"op", op_name(cell.call.op)},
         {"type", dtype_name(cell.call.weight_type)},
         {"n", cell.call.n},
         {"k", cell.call.k},
         {"rows", cell.call.rows},
         {"variant", cell.variant},
         {"best", tile_name(result.sweep, cell.best().tile)},
         {"chosen", tile_name(result.sweep, tile_of(result.rules, cell.call, result.sweep.own))},
         {"tiles", std::move(tiles)}});
  }
  return cells;
}

}  // namespace reckon::cli
