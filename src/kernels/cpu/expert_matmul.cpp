#include "kernels/cpu/expert_matmul.h"

#include <algorithm>
#include <cstddef>
#include <new>

#include "base/check.h"
#include "kernels/call.h"
#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/panels.h"

namespace reckon::kernels::cpu {
namespace {

// One expert's rows against one matrix of it.
struct Piece {
  MatmulArgs args;
  MatmulJob job;
  MatmulWork work;
  int64_t first_prepare = 0, first_multiply = 0;  // tasks of the pieces before it
};

constexpr int64_t kCombineColumns = 512;  // of one task

uint64_t bytes_of(int64_t count, size_t each) {
  return aligned(count * static_cast<int64_t>(each));
}

// How a call's activations are kept.
struct Layout {
  ActivationLayout activations;
  KernelParams params;  // effective; slots go by them
};

// What the activations of one piece take. Float formats always count: rows are gathered.
uint64_t activation_bytes(const Layout& layout, DType type, int64_t rows, int64_t k) {
  if (layout.activations == ActivationLayout::kSlots) {
    return static_cast<uint64_t>(slots_of(rows, layout.params)) * slot_bytes(type, k);
  }
  if (!has_integer_codes(type)) {
    const bool in_rows = layout.activations == ActivationLayout::kRows;
    return bytes_of(rows * (in_rows ? k : padded_columns(k)), sizeof(float));
  }
  switch (layout.activations) {
    case ActivationLayout::kRows:
      return scalar_matmul_scratch(type, rows, k).total;
    case ActivationLayout::kTiles:
      return tiled_matmul_scratch(type, rows, k, TileOrder::kRow, 1).weights;
    case ActivationLayout::kPlanes:
      return plane_matmul_scratch(type, rows, k, TileOrder::kRow, 1).weights;
    case ActivationLayout::kPanels:
      return panel_matmul_scratch(type, rows, k);
    case ActivationLayout::kSlots:
      break;
  }
  return 0;
}

// The most that the activations of `pairs` rows take in all, however they fall on the experts: a
// row takes most where it is alone, or one of the fewest that go by tiles, which are filled up.
uint64_t most_activation_bytes(const Layout& layout, DType type, int64_t pairs, int64_t experts,
                               int64_t k) {
  if (layout.activations == ActivationLayout::kSlots) {
    return static_cast<uint64_t>(most_slots(pairs, experts, layout.params)) * slot_bytes(type, k);
  }
  constexpr int64_t kFewest = kDirectRows + 1;
  const uint64_t tiled = activation_bytes(layout, type, kFewest, k);
  return static_cast<uint64_t>(pairs) *
         std::max(activation_bytes(layout, type, 1, k),
                  aligned(static_cast<int64_t>((tiled + kFewest - 1) / kFewest)));
}

// Of a thread's unpacked weights; `rows` is the most that one piece can have.
uint64_t weight_bytes(const Layout& layout, DType type, int64_t rows, int64_t k) {
  if (layout.activations == ActivationLayout::kSlots) {
    return expert_thread_scratch(type, k, layout.params).total;
  }
  if (layout.activations == ActivationLayout::kTiles) {
    return tiled_matmul_scratch(type, rows, k, TileOrder::kRow, 1).weights_stride;
  }
  if (layout.activations == ActivationLayout::kPlanes) {
    return plane_matmul_scratch(type, rows, k, TileOrder::kRow, 1).weights_stride;
  }
  return 0;
}

// A call as both ops see it, and where its scratch is.
struct Plan {
  Layout layout;
  int64_t rows, experts, top_k, n, k, pairs, matrices;
  DType type;
  uint64_t order, places, starts, pieces, products, activations, weights, weights_stride, total;
};

Plan plan_of(const Layout& layout, const OpCall& call, int threads) {
  Plan plan{};
  plan.layout = layout;
  plan.rows = call.rows;
  plan.experts = call.groups;
  plan.top_k = call.m;
  plan.n = call.n;
  plan.k = call.k;
  plan.pairs = call.rows * call.m;
  plan.matrices = call.op == Op::kExpertMatmulSwiglu ? 2 : 1;
  plan.type = call.weight_type;
  const auto take = [&](uint64_t bytes) {
    const uint64_t at = plan.total;
    plan.total += bytes;
    return at;
  };
  const int64_t most = std::min(plan.pairs, plan.experts);
  plan.order = take(bytes_of(plan.pairs, sizeof(int32_t)));
  plan.places = take(bytes_of(plan.pairs, sizeof(int32_t)));
  plan.starts = take(bytes_of(plan.experts + 1, sizeof(int32_t)));
  plan.pieces = take(bytes_of(most * plan.matrices, sizeof(Piece)));
  plan.products = take(bytes_of(plan.pairs * plan.n * plan.matrices, sizeof(float)));
  plan.activations =
      take(most_activation_bytes(layout, plan.type, plan.pairs, plan.experts, plan.k));
  plan.weights_stride = weight_bytes(layout, plan.type, plan.rows, plan.k);
  plan.weights = take(plan.weights_stride * static_cast<uint64_t>(threads));
  return plan;
}

// The pairs of a row and one of its experts (pair = row * top_k + j), by expert and then by row.
struct Order {
  int32_t* pairs;   // [pairs] by place
  int32_t* places;  // [pairs] the place of each pair
  int32_t* starts;  // [experts + 1] the first place of each expert
};

void sort_pairs(const Plan& plan, const float* selection, const Order& order) {
  std::fill_n(order.starts, plan.experts + 1, 0);
  const auto expert_of = [&](int64_t pair) {
    return selected_experts(selection, pair / plan.top_k, plan.top_k)[pair % plan.top_k];
  };
  for (int64_t pair = 0; pair < plan.pairs; ++pair) ++order.starts[expert_of(pair)];
  int32_t before = 0;
  for (int64_t e = 0; e <= plan.experts; ++e) {
    const int32_t count = order.starts[e];
    order.starts[e] = before;
    before += count;
  }
  // Each start moves to its expert's end, which is the next one's start.
  for (int64_t pair = 0; pair < plan.pairs; ++pair) {
    const int32_t place = order.starts[expert_of(pair)]++;
    order.pairs[place] = static_cast<int32_t>(pair);
    order.places[pair] = place;
  }
  for (int64_t e = plan.experts; e > 0; --e) order.starts[e] = order.starts[e - 1];
  order.starts[0] = 0;
}

struct Run {
  Piece* pieces = nullptr;
  int64_t count = 0;
  int64_t prepare_tasks = 0, multiply_tasks = 0;
};

// Runs task `task` of the piece that it belongs to: the last one that begins at or before it.
template <int64_t Piece::*kFirst, MatmulTask MatmulWork::*kTask>
void run_task(void* argument, int64_t task, int thread) {
  const auto& run = *static_cast<const Run*>(argument);
  const auto starts_later = [](int64_t t, const Piece& piece) { return t < piece.*kFirst; };
  Piece& piece = *(std::upper_bound(run.pieces, run.pieces + run.count, task, starts_later) - 1);
  (piece.work.*kTask)(&piece.job, task - piece.*kFirst, thread);
}

struct Matrix {
  const void* rows;
  const void* panels;
};

// What all pieces of a call have in common.
struct Call {
  const Plan* plan;
  const ExpertKernel* kernel;
  char* memory;
  const float* x;
  const int32_t* sources;  // by place: the row of x
  int threads;
  int64_t active;  // experts with rows
};

// The piece of expert `e` and one matrix; its products go to `out`, [rows of the expert, n].
void set_piece(const Call& call, int64_t e, int64_t first, int64_t rows, const Matrix& matrix,
               float* out, char* activations, Piece& piece) {
  const Plan& plan = *call.plan;
  MatmulArgs& args = piece.args;
  const bool alone = rows == 1;
  const int32_t* sources = call.sources + first;
  args.x = alone ? call.x + sources[0] * plan.k : call.x;
  args.weight =
      static_cast<const char*>(matrix.rows) + e * plan.n * weight_row_bytes(plan.type, plan.k);
  args.weight_type = plan.type;
  args.out = out;
  args.rows = rows;
  args.n = plan.n;
  args.k = plan.k;
  args.params = plan.layout.params;
  if (matrix.panels != nullptr) {
    args.panels = static_cast<const char*>(matrix.panels) +
                  static_cast<uint64_t>(e) * panel_bytes(plan.type, plan.n, plan.k);
  }
  piece.job.args = &args;
  piece.job.sources = alone ? nullptr : sources;
  piece.job.activations = activations;
  piece.job.weights = call.memory + plan.weights;
  piece.job.weights_stride = plan.weights_stride;
  piece.job.parts = call.active * plan.matrices;
  piece.work = call.kernel->plan(piece.job, call.threads);
}

// Multiplies the rows of every expert with its matrices, `products` being [matrices, pairs, n] by
// place.
void multiply(Call& call, KernelContext& context, const Order& order, const Matrix* matrices) {
  const Plan& plan = *call.plan;
  auto* products = reinterpret_cast<float*>(call.memory + plan.products);
  char* activations = call.memory + plan.activations;
  for (int64_t e = 0; e < plan.experts; ++e) {
    if (order.starts[e + 1] > order.starts[e]) ++call.active;
  }
  Run run{reinterpret_cast<Piece*>(call.memory + plan.pieces)};
  for (int64_t e = 0; e < plan.experts; ++e) {
    const int64_t first = order.starts[e];
    const int64_t rows = order.starts[e + 1] - first;
    if (rows == 0) continue;
    for (int64_t m = 0; m < plan.matrices; ++m) {
      Piece& piece = *new (run.pieces + run.count) Piece();
      float* out = products + (m * plan.pairs + first) * plan.n;
      set_piece(call, e, first, rows, matrices[m], out, activations, piece);
      if (m > 0) piece.work.prepare_tasks = 0;  // the activations of the first one
      piece.first_prepare = run.prepare_tasks;
      piece.first_multiply = run.multiply_tasks;
      run.prepare_tasks += piece.work.prepare_tasks;
      run.multiply_tasks += piece.work.multiply_tasks;
      ++run.count;
    }
    activations += activation_bytes(plan.layout, plan.type, rows, plan.k);
  }
  RECKON_CHECK(activations <= call.memory + plan.weights);
  parallel_for(context, run.prepare_tasks, run_task<&Piece::first_prepare, &MatmulWork::prepare>,
               &run);
  parallel_for(context, run.multiply_tasks, run_task<&Piece::first_multiply, &MatmulWork::multiply>,
               &run);
}

// Begins a call: takes the scratch and sorts the pairs.
Call begin(const Plan& plan, const float* selection, KernelContext& context,
           const ExpertKernel& kernel, Order& order) {
  Call call{};
  call.plan = &plan;
  call.kernel = &kernel;
  call.memory = static_cast<char*>(scratch(context, plan.total));
  call.threads = thread_count(context);
  order = {reinterpret_cast<int32_t*>(call.memory + plan.order),
           reinterpret_cast<int32_t*>(call.memory + plan.places),
           reinterpret_cast<int32_t*>(call.memory + plan.starts)};
  sort_pairs(plan, selection, order);
  return call;
}

struct SwigluJob {
  const Plan* plan;
  const ExpertKernel* kernel;
  const int32_t* places;
  const float* products;
  float* out;
};

// Task: a pair.
void swiglu_pair(void* argument, int64_t pair, int /*thread*/) {
  const auto& job = *static_cast<const SwigluJob*>(argument);
  const int64_t n = job.plan->n;
  const float* gate = job.products + job.places[pair] * n;
  job.kernel->swiglu(gate, gate + job.plan->pairs * n, job.out + pair * n, n);
}

int64_t combine_tasks_of_row(const Plan& plan) {
  return (plan.n + kCombineColumns - 1) / kCombineColumns;
}

struct CombineJob {
  const Plan* plan;
  const int32_t* places;
  const float* products;
  const float* selection;
  float* out;
};

// Task: some columns of a row.
void combine_columns(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const CombineJob*>(argument);
  const Plan& plan = *job.plan;
  const int64_t tasks = combine_tasks_of_row(plan);
  const int64_t row = task / tasks;
  const int64_t first = task % tasks * kCombineColumns;
  const int64_t count = std::min(kCombineColumns, plan.n - first);
  const float* weights = selected_weights(job.selection, row, plan.top_k);
  float* out = job.out + row * plan.n + first;
  std::fill_n(out, count, 0.0F);
  for (int64_t j = 0; j < plan.top_k; ++j) {
    const float* product = job.products + job.places[row * plan.top_k + j] * plan.n + first;
    const float weight = weights[j];
    for (int64_t i = 0; i < count; ++i) out[i] += weight * product[i];
  }
}

}  // namespace

uint64_t expert_matmul_scratch_bytes(ActivationLayout layout, const OpCall& call,
                                     const KernelParams& params, int threads) {
  return plan_of({layout, params}, call, threads).total;
}

void run_expert_swiglu(const ExpertMatmulSwigluArgs& args, KernelContext& context,
                       const ExpertKernel& kernel) {
  if (args.rows == 0) return;
  const Plan plan =
      plan_of({kernel.layout, args.params}, call_of(args, Phase::kPrefill), thread_count(context));
  Order order{};
  Call call = begin(plan, args.selection, context, kernel, order);
  call.x = args.x;
  // By place, from pairs to rows; order.pairs is not looked at again.
  for (int64_t place = 0; place < plan.pairs; ++place) {
    order.pairs[place] /= static_cast<int32_t>(plan.top_k);
  }
  call.sources = order.pairs;
  const Matrix matrices[2] = {{args.gate, args.gate_panels}, {args.up, args.up_panels}};
  multiply(call, context, order, matrices);
  SwigluJob job{&plan, &kernel, order.places,
                reinterpret_cast<const float*>(call.memory + plan.products), args.out};
  parallel_for(context, plan.pairs, swiglu_pair, &job);
}

void run_expert_combine(const ExpertMatmulCombineArgs& args, KernelContext& context,
                        const ExpertKernel& kernel) {
  if (args.rows == 0) return;
  const Plan plan =
      plan_of({kernel.layout, args.params}, call_of(args, Phase::kPrefill), thread_count(context));
  Order order{};
  Call call = begin(plan, args.selection, context, kernel, order);
  call.x = args.x;
  call.sources = order.pairs;
  const Matrix matrix{args.down, args.down_panels};
  multiply(call, context, order, &matrix);
  CombineJob job{&plan, order.places, reinterpret_cast<const float*>(call.memory + plan.products),
                 args.selection, args.out};
  parallel_for(context, plan.rows * combine_tasks_of_row(plan), combine_columns, &job);
}

}  // namespace reckon::kernels::cpu
