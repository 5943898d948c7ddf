#include "kernels/native_types.h"

#include <algorithm>

#include "kernels/panels.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

constexpr int64_t kPrefillRows = 512;
// Row counts at which choices change, and some more.
constexpr int64_t kRowCounts[] = {1, 2, 4, 6, 8, 16, 64, 512, 2048};

OpCall matmul_call(Phase phase, DType type, int64_t n, int64_t k) {
  OpCall call;
  call.op = Op::kMatmul;
  call.phase = phase;
  call.weight_type = type;
  call.rows = phase == Phase::kPrefill ? kPrefillRows : 1;
  call.n = n;
  call.k = k;
  call.in_panels = has_panels(type) && k % block_elements(type) == 0;
  return call;
}

bool runs(const Backend& backend, const Variant& row, const OpCall& call) {
  const bool loose_enough = call.phase == Phase::kPrefill
                                ? row.numerics != NumericsClass::kReference
                                : row.numerics == NumericsClass::kExact;
  const Isa best = backend.device().best_isa;
  // Plain C++ is no kernel made for a device with vectors: conversion to another type is faster.
  const bool is_vectorised = row.isa > Isa::kScalar || best == Isa::kScalar;
  return row.op == Op::kMatmul && loose_enough && row.isa <= best && is_vectorised &&
         (row.supports == nullptr || row.supports(call).empty());
}

}  // namespace

bool has_matmul(const Backend& backend, DType type, int64_t n, int64_t k) {
  const auto any_runs = [&](Phase phase) {
    return std::ranges::any_of(backend.variants(), [&](const Variant& row) {
      return runs(backend, row, matmul_call(phase, type, n, k));
    });
  };
  return any_runs(Phase::kDecode) && any_runs(Phase::kPrefill);
}

bool reads_panels(const Backend& backend, DType type, int64_t n, int64_t k) {
  const OpCall call = matmul_call(Phase::kDecode, type, n, k);
  return call.in_panels && std::ranges::any_of(backend.variants(), [&](const Variant& row) {
           return row.layout == WeightLayout::kPanels && runs(backend, row, call);
         });
}

LayoutsRead layouts_read(Planner& planner, DType type, int64_t n, int64_t k) {
  LayoutsRead read;
  for (const Phase phase : {Phase::kPrefill, Phase::kVerify, Phase::kDecode}) {
    OpCall call = matmul_call(phase, type, n, k);
    for (const int64_t rows : kRowCounts) {
      if (phase == Phase::kDecode && rows > 1) break;
      call.rows = rows;
      const auto choice = planner.choose(call);
      const bool panels = choice.ok() && (*choice)->layout == WeightLayout::kPanels;
      read.panels = read.panels || panels || !choice.ok();
      read.rows = read.rows || !panels;
    }
  }
  return read;
}

}  // namespace reckon::kernels
