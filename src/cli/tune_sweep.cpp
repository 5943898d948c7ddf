#include "cli/tune_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <tuple>

#include "engine/memory_plan.h"
#include "kernels/dispatch.h"
#include "kernels/plan.h"
#include "kernels/trace.h"

namespace reckon::cli {
namespace {

using kernels::OpCall;
using kernels::TileShape;

constexpr std::array kAllTiles = {TileShape::kAuto, TileShape::kTall, TileShape::kWide,
                                  TileShape::kSquare};
constexpr double kSampleNs = 5e6;  // a sample repeats its call for about as long
constexpr int kMostRepeats = 1000;
constexpr int kWarmups = 1;

// A planner of its own for each tile, and what its calls are run by.
struct Lane {
  TileShape tile;
  std::unique_ptr<kernels::Planner> planner;
  std::unique_ptr<kernels::Trace> trace;
  std::unique_ptr<kernels::Dispatcher> dispatcher;
};

Result<kernels::SwitchSet> with_tile(kernels::SwitchSet switches, TileShape tile) {
  TRY(switches.set("prefill.tile_rules", "none"));
  TRY(switches.set("prefill.tile", tile_shape_name(tile)));
  return switches;
}

struct Planned {
  std::vector<OpCall> calls;
  engine::SessionPlan largest;  // with the most scratch and activations
};

// The distinct matmuls of a prefill in each chunk.
Result<Planned> plan_chunks(const engine::LoadedModel& model, const kernels::SwitchSet& switches,
                            const TuneOptions& options) {
  Planned planned;
  for (const int64_t chunk : options.chunks) {
    kernels::SwitchSet set = switches;
    TRY(set.set("prefill.chunk", std::to_string(chunk)));
    kernels::Planner planner(set, model.backend().device(), model.backend().variants());
    engine::SessionShape shape;
    shape.capacity = chunk;
    engine::PassKinds passes;
    passes.prefill_rows = {chunk};
    passes.decode = passes.pick = false;
    TRY_ASSIGN(planned.largest,
               engine::plan_session(model.model(), planner, shape, passes, model.backend()));
    TRY_ASSIGN(const engine::Budget budget,
               engine::detect_budget(std::nullopt, model.allocated_bytes(), model.backend()));
    TRY(engine::check_budget(model.model(), planner, planned.largest, budget, model.backend()));
    for (const engine::PlannedCall& one : planned.largest.calls) {
      const OpCall& call = one.call;
      if (call.op != kernels::Op::kMatmul || call.phase != kernels::Phase::kPrefill) continue;
      if (std::ranges::find(planned.calls, call) == planned.calls.end()) {
        planned.calls.push_back(call);
      }
    }
  }
  std::ranges::stable_sort(planned.calls, {}, [](const OpCall& call) {
    return std::tuple(call.weight_type, call.n, call.k, call.rows);
  });
  return planned;
}

std::vector<Weight> weights_of(const engine::LoadedModel& model, const OpCall& call) {
  std::vector<Weight> weights;
  for (const models::PlacedWeight& placed : model.weights()) {
    const Weight& weight = placed.placed;
    if (weight.type == call.weight_type && weight.n == call.n && weight.k == call.k &&
        weight.in_panels == call.in_panels) {
      weights.push_back(weight);
    }
  }
  return weights;
}

class Sweeper {
 public:
  static Result<std::unique_ptr<Sweeper>> create(const engine::LoadedModel& model,
                                                 const kernels::SwitchSet& switches,
                                                 const TuneOptions& options) {
    std::unique_ptr<Sweeper> sweeper(new Sweeper(model, options));
    for (const TileShape tile : kAllTiles) {
      TRY_ASSIGN(const kernels::SwitchSet set, with_tile(switches, tile));
      sweeper->lanes_.push_back({tile,
                                 std::make_unique<kernels::Planner>(set, model.backend().device(),
                                                                    model.backend().variants()),
                                 std::make_unique<kernels::Trace>(), nullptr});
    }
    return sweeper;
  }

  // The calls whose kernels have several tiles. Errors: none has.
  Status choose_calls(const std::vector<OpCall>& calls) {
    for (const OpCall& call : calls) {
      TRY_ASSIGN(const std::vector<TileShape> tiles, tiles_of(call));
      if (tiles.size() > 1) calls_.push_back(call);
    }
    if (!calls_.empty()) return {};
    return refused(
        "nothing to tune: no kernel of this model's prefill matmuls has several tiles "
        "here ('reckon plan' shows them)");
  }

  // Memory for the largest call, and threads.
  Status prepare() {
    int64_t inputs = 0;
    int64_t outputs = 0;
    uint64_t scratch_bytes = 0;
    for (const OpCall& call : calls_) {
      inputs = std::max(inputs, call.rows * call.k);
      outputs = std::max(outputs, call.rows * call.n);
      for (Lane& lane : lanes_) {
        TRY_ASSIGN(const kernels::Choice* choice, lane.planner->choose(call));
        scratch_bytes = std::max(scratch_bytes, choice->scratch_bytes);
      }
    }
    TRY_ASSIGN(x_, floats("inputs", inputs));
    TRY_ASSIGN(out_, floats("outputs", outputs));
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < inputs; ++i) x_[i] = uniform(random);
    TRY_ASSIGN(void* scratch, arenas_.allocate(MemoryTag::kScratch, "scratch", scratch_bytes));
    threads_ = std::make_unique<ThreadPool>(lanes_.front().planner->threads());
    for (Lane& lane : lanes_) {
      lane.dispatcher = std::make_unique<kernels::Dispatcher>(
          *lane.planner, kernels::DispatchResources{.threads = threads_.get(),
                                                    .trace = lane.trace.get(),
                                                    .scratch = scratch,
                                                    .scratch_bytes = scratch_bytes});
      lane.dispatcher->set_phase(kernels::Phase::kPrefill);
    }
    return {};
  }

  [[nodiscard]] const std::vector<OpCall>& calls() const { return calls_; }
  [[nodiscard]] int threads() const { return threads_->threads(); }
  [[nodiscard]] bool stopped() const { return stopped_; }  // the last cell is not whole

  // The name of the kernel's own tile for the calls.
  Result<TileShape> own_tile() {
    TRY_ASSIGN(const std::vector<TileShape> tiles, tiles_of(calls_.front()));
    for (const TileShape tile : {TileShape::kSquare, TileShape::kWide, TileShape::kTall}) {
      if (std::ranges::find(tiles, tile) == tiles.end()) return tile;
    }
    return TileShape::kAuto;
  }

  Result<TunedCell> measure(const OpCall& call) {
    weights_ = weights_of(model_, call);
    if (weights_.empty()) {
      return failed(fmt::format("the model has no weight for matmul {}", shape_text(call)));
    }
    TunedCell cell;
    cell.call = call;
    TRY_ASSIGN(const kernels::Choice* own, lane(TileShape::kAuto).planner->choose(call));
    cell.variant = own->variant->name;
    cell.tiles.push_back({TileShape::kAuto, 0, 0, own->scratch_bytes, {}});
    TRY(calibrate(call));
    TRY_ASSIGN(const std::vector<TileShape> tiles, tiles_of(call));
    std::vector<double> own_ms;
    for (const TileShape tile : tiles) {
      if (tile == TileShape::kAuto) continue;
      TRY_ASSIGN(TileTime time, measure_tile(call, tile));
      if (stopped_) return cell;
      for (const measure::Pair& pair : time.pairs) {
        if (!pair.warmup) own_ms.push_back(pair.base);
      }
      cell.tiles.push_back(std::move(time));
    }
    TRY_ASSIGN(cell.tiles.front().ms, measure::median(own_ms));
    for (TileTime& time : cell.tiles) time.ms = cell.tiles.front().ms * std::exp(-time.gain);
    return cell;
  }

 private:
  Sweeper(const engine::LoadedModel& model, const TuneOptions& options)
      : model_(model), options_(options), arenas_(model.backend().memory()), seed_(options.seed) {}

  Result<float*> floats(const char* name, int64_t count) {
    TRY_ASSIGN(void* memory, arenas_.allocate(MemoryTag::kActivations, name,
                                              static_cast<uint64_t>(count) * sizeof(float)));
    return static_cast<float*>(memory);
  }

  Lane& lane(TileShape tile) { return *std::ranges::find(lanes_, tile, &Lane::tile); }

  // kAuto and every shape that differs from it.
  Result<std::vector<TileShape>> tiles_of(const OpCall& call) {
    std::vector<TileShape> tiles;
    for (Lane& one : lanes_) {
      TRY_ASSIGN(const kernels::Choice* choice, one.planner->choose(call));
      if (one.tile == TileShape::kAuto || choice->params.tile == one.tile) {
        tiles.push_back(one.tile);
      }
    }
    return tiles;
  }

  // As many repeats as make a sample; the run that says so also warms up.
  Status calibrate(const OpCall& call) {
    repeats_ = 1;
    TRY_ASSIGN(const double first, sample(call, TileShape::kAuto));
    TRY_ASSIGN(const double second, sample(call, TileShape::kAuto));
    const double ns = std::max(std::min(first, second) * 1e6, 1.0);
    repeats_ = std::clamp(static_cast<int>(std::lround(kSampleNs / ns)), 1, kMostRepeats);
    return {};
  }

  // Milliseconds a call. Weights rotate, as layers do in a pass, so that a cache serves no more of
  // them than it would there.
  Result<double> sample(const OpCall& call, TileShape tile) {
    kernels::Dispatcher& ops = *lane(tile).dispatcher;
    const Activation x{x_, call.rows, call.k};
    const Activation out{out_, call.rows, call.n};
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats_; ++i) {
      TRY(ops.matmul(x, weights_[static_cast<size_t>(i) % weights_.size()], out));
    }
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return elapsed.count() / repeats_;
  }

  Result<TileTime> measure_tile(const OpCall& call, TileShape tile) {
    TileTime time;
    time.tile = tile;
    TRY_ASSIGN(const kernels::Choice* choice, lane(tile).planner->choose(call));
    time.scratch_bytes = choice->scratch_bytes;
    std::vector<measure::Order> orders(kWarmups, measure::Order::kBaseFirst);
    for (const measure::Order order : measure::balanced_order(options_.pairs, seed_++)) {
      orders.push_back(order);
    }
    for (size_t i = 0; i < orders.size(); ++i) {
      stopped_ = options_.stop && options_.stop();
      if (stopped_) return time;
      measure::Pair pair;
      pair.order = orders[i];
      pair.warmup = i < kWarmups;
      const bool base_first = pair.order == measure::Order::kBaseFirst;
      if (base_first) {
        TRY_ASSIGN(pair.base, sample(call, TileShape::kAuto));
      }
      TRY_ASSIGN(pair.arm, sample(call, tile));
      if (!base_first) {
        TRY_ASSIGN(pair.base, sample(call, TileShape::kAuto));
      }
      time.pairs.push_back(pair);
    }
    TRY_ASSIGN(time.gain, measure::round_median(time.pairs, measure::Better::kLower));
    return time;
  }

  const engine::LoadedModel& model_;
  TuneOptions options_;
  ArenaSet arenas_;
  std::vector<Lane> lanes_;
  std::vector<OpCall> calls_;
  float* x_ = nullptr;
  float* out_ = nullptr;
  std::unique_ptr<ThreadPool> threads_;
  std::vector<Weight> weights_;  // of the call that is measured
  int repeats_ = 1;
  uint64_t seed_;
  bool stopped_ = false;
};

}  // namespace

const TileTime& TunedCell::best() const {
  return *std::ranges::max_element(tiles, {}, &TileTime::gain);
}

std::map<TileShape, double> TunedCell::losses() const {
  std::map<TileShape, double> losses;
  for (const TileTime& time : tiles) losses[time.tile] = best().gain - time.gain;
  return losses;
}

Result<Sweep> run_sweep(const engine::LoadedModel& model, const kernels::SwitchSet& switches,
                        const TuneOptions& options, const TuneProgress& progress) {
  if (model.backend().device().backend != "cpu") {
    return usage_error("tune times kernels of the CPU alone: expected --backend cpu");
  }
  TRY_ASSIGN(const Planned planned, plan_chunks(model, switches, options));
  TRY_ASSIGN(const auto sweeper, Sweeper::create(model, switches, options));
  TRY(sweeper->choose_calls(planned.calls));
  TRY(model.load({}));
  TRY(sweeper->prepare());
  Sweep sweep;
  sweep.threads = sweeper->threads();
  TRY_ASSIGN(sweep.own, sweeper->own_tile());
  const std::vector<OpCall>& calls = sweeper->calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    progress(calls[i], i, calls.size());
    TRY_ASSIGN(TunedCell cell, sweeper->measure(calls[i]));
    sweep.stopped = sweeper->stopped();
    if (sweep.stopped) break;
    sweep.cells.push_back(std::move(cell));
  }
  return sweep;
}

}  // namespace reckon::cli
