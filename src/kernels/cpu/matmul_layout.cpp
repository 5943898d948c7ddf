#include "kernels/cpu/matmul_layout.h"

#include "kernels/cpu/canonical_order.h"
#include "tensor/dtype.h"

namespace reckon::kernels::cpu {
namespace {

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

uint64_t aligned(int64_t bytes) {
  return static_cast<uint64_t>(divide_up(bytes, 64) * 64);
}

bool has_integer_codes(DType type) {
  switch (type) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ8_0:
    case DType::kQ4_K:
    case DType::kQ6_K:
    case DType::kP4:
    case DType::kP8:
      return true;
    default:
      return false;
  }
}

int64_t activation_groups(DType type, int64_t k) {
  const int64_t block = block_elements(type);
  return divide_up(k, block) * (block / kGroup);
}

int64_t padded_columns(int64_t k) {
  return divide_up(k, kFloatLanes) * kFloatLanes;
}

int64_t weight_row_bytes(DType type, int64_t k) {
  return row_bytes(type, k);
}

MatmulScratch scalar_matmul_scratch(DType type, int64_t rows, int64_t k) {
  MatmulScratch scratch;
  if (has_integer_codes(type)) {
    scratch.total =
        aligned(rows * activation_groups(type, k) * static_cast<int64_t>(sizeof(RowGroup)));
  }
  return scratch;
}

MatmulScratch tiled_matmul_scratch(DType type, int64_t rows, int64_t k, TileOrder order,
                                   int threads) {
  const bool direct = rows <= kDirectRows;
  const int64_t weight_rows = kWeightTile * (order == TileOrder::kBand8 ? kBandTiles : 1);
  int64_t activations = 0;
  int64_t weights = 0;
  if (has_integer_codes(type)) {
    const int64_t groups = activation_groups(type, k);
    activations =
        direct ? rows * groups * static_cast<int64_t>(sizeof(RowGroup))
               : divide_up(rows, kTileRows) * groups * static_cast<int64_t>(sizeof(TileGroup));
    weights = weight_rows / kPanelRows * groups * static_cast<int64_t>(sizeof(PanelBlock));
  } else {
    const int64_t row = padded_columns(k) * static_cast<int64_t>(sizeof(float));
    activations = k % kFloatLanes == 0 ? 0 : rows * row;  // whole lanes are read in place
    weights = weight_rows * row;
  }
  MatmulScratch scratch;
  scratch.weights = aligned(activations);
  scratch.weights_stride = direct ? 0 : aligned(weights);
  scratch.total = scratch.weights + scratch.weights_stride * static_cast<uint64_t>(threads);
  return scratch;
}

MatmulScratch plane_matmul_scratch(DType type, int64_t rows, int64_t k, TileOrder order,
                                   int threads) {
  const int64_t weight_rows = kPlaneTile * (order == TileOrder::kBand8 ? kBandTiles : 1);
  int64_t activations = 0;
  int64_t weights = 0;
  if (has_integer_codes(type)) {
    const int64_t groups = activation_groups(type, k);
    activations = rows * groups * static_cast<int64_t>(sizeof(PlaneGroup));
    weights = weight_rows / kPanelLanes * groups * static_cast<int64_t>(sizeof(PlanePanel));
  } else {
    const int64_t row = padded_columns(k) * static_cast<int64_t>(sizeof(float));
    activations = k % kFloatLanes == 0 ? 0 : rows * row;  // whole lanes are read in place
    weights = weight_rows * row;
  }
  MatmulScratch scratch;
  scratch.weights = aligned(activations);
  scratch.weights_stride = rows <= kDirectRows ? 0 : aligned(weights);
  scratch.total = scratch.weights + scratch.weights_stride * static_cast<uint64_t>(threads);
  return scratch;
}

uint64_t panel_matmul_scratch(DType type, int64_t rows, int64_t k) {
  return aligned(rows * activation_groups(type, k) * static_cast<int64_t>(sizeof(PlaneGroup)));
}

TileOrder effective_tile_order(int64_t rows, int64_t n, int64_t weight_tile, TileOrder wanted) {
  const bool one_pass = rows <= kDirectRows || rows <= kTokenTile;
  const bool one_band = n <= weight_tile * kBandTiles;
  return one_pass || one_band ? TileOrder::kRow : wanted;
}

}  // namespace reckon::kernels::cpu
