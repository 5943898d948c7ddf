#include "kernels/cuda/weight_tiles.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace reckon::kernels::cuda {
namespace {

// Where slot (w, r, h) of a lane stands in its tile.
struct Slot {
  int row;     // in the strip
  int column;  // in the tile
};

Slot slot_position(int lane, int w, int r, int h) {
  const int g = lane / 4, t = lane % 4;
  return {g + 8 * (r & 1), 16 * t + 4 * w + 2 * (r >> 1) + h};
}

int p4_nibble(int r, int h) {
  return 2 * (r & 1) + (r >> 1) + 4 * h;
}
int64_t p4_word(int lane, int w) {
  return (lane * 4 + w) * int64_t{4};
}
int64_t p8_byte(int lane, int w, int r, int h) {
  return (w / 2) * 512 + lane * 16 + (w % 2) * 8 + (r >> 1) * 4 + (r & 1) + 2 * h;
}
int64_t half_byte(int lane, int w, int r, int h) {
  return w * 512 + lane * 16 + r * 4 + h * int64_t{2};
}
int64_t float_byte(int lane, int w, int r, int h) {
  return (w * 2 + (r >> 1)) * 512 + lane * 16 + (r & 1) * 8 + h * int64_t{4};
}
int64_t scale_byte(TileType type, int row) {
  const int64_t index = (row % 8) * 2 + row / 8;
  return type == TileType::kP4 ? 512 + index * 4 : 1024 + index * 2;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half >> 15) << 31;
  const uint32_t exponent = (half >> 10) & 31;
  const uint32_t mantissa = half & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

// `rows` starts at the strip's first row; `valid` of its 16 rows exist. `tile` is zeroed already.
void pack_p4(const uint8_t* rows, int64_t row_bytes, int64_t valid, int64_t index, uint8_t* tile) {
  for (int64_t row = 0; row < valid; ++row) {
    const uint8_t* block = rows + row * row_bytes + index * 36;
    std::memcpy(tile + scale_byte(TileType::kP4, static_cast<int>(row)), block, 4);
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int w = 0; w < 4; ++w) {
      uint32_t word = 0;
      for (int r = 0; r < 4; ++r) {
        for (int h = 0; h < 2; ++h) {
          const Slot slot = slot_position(lane, w, r, h);
          if (slot.row >= valid) continue;
          const uint8_t byte = rows[slot.row * row_bytes + index * 36 + 4 + slot.column % 32];
          const uint32_t code = slot.column < 32 ? byte & 15 : byte >> 4;
          word |= code << (4 * p4_nibble(r, h));
        }
      }
      std::memcpy(tile + p4_word(lane, w), &word, 4);
    }
  }
}

void pack_p8(const uint8_t* rows, int64_t row_bytes, int64_t valid, int64_t index, uint8_t* tile) {
  for (int64_t row = 0; row < valid; ++row) {
    const uint8_t* block = rows + row * row_bytes + index * 66;
    std::memcpy(tile + scale_byte(TileType::kP8, static_cast<int>(row)), block, 2);
  }
  std::memset(tile, 128, 1024);
  for (int lane = 0; lane < 32; ++lane) {
    for (int w = 0; w < 4; ++w) {
      for (int r = 0; r < 4; ++r) {
        for (int h = 0; h < 2; ++h) {
          const Slot slot = slot_position(lane, w, r, h);
          if (slot.row >= valid) continue;
          const uint8_t code = rows[slot.row * row_bytes + index * 66 + 2 + slot.column];
          tile[p8_byte(lane, w, r, h)] = code ^ 128;
        }
      }
    }
  }
}

void pack_plain(TileType type, const uint8_t* rows, int64_t row_bytes, int64_t valid, int64_t index,
                int64_t k, uint8_t* tile) {
  const int size = type == TileType::kF32 ? 4 : 2;
  for (int lane = 0; lane < 32; ++lane) {
    for (int w = 0; w < 4; ++w) {
      for (int r = 0; r < 4; ++r) {
        for (int h = 0; h < 2; ++h) {
          const Slot slot = slot_position(lane, w, r, h);
          const int64_t column = index * kTileColumns + slot.column;
          if (slot.row >= valid || column >= k) continue;
          const int64_t to = size == 4 ? float_byte(lane, w, r, h) : half_byte(lane, w, r, h);
          std::memcpy(tile + to, rows + slot.row * row_bytes + column * size,
                      static_cast<size_t>(size));
        }
      }
    }
  }
}

}  // namespace

void pack_tiles(TileType type, const void* rows, int64_t n, int64_t k, int64_t first_strip,
                int64_t strip_count, void* out) {
  const int64_t row_bytes = packed_row_bytes(type, k);
  const int64_t bytes = tile_bytes(type);
  uint8_t* tile = static_cast<uint8_t*>(out);
  for (int64_t strip = first_strip; strip < first_strip + strip_count; ++strip) {
    const int64_t valid = std::clamp<int64_t>(n - strip * kTileRows, 0, kTileRows);
    const uint8_t* strip_rows =
        static_cast<const uint8_t*>(rows) + (valid > 0 ? strip * kTileRows * row_bytes : 0);
    for (int64_t index = 0; index < tiles_of(k); ++index, tile += bytes) {
      std::memset(tile, 0, static_cast<size_t>(bytes));
      switch (type) {
        case TileType::kP4:
          pack_p4(strip_rows, row_bytes, valid, index, tile);
          break;
        case TileType::kP8:
          pack_p8(strip_rows, row_bytes, valid, index, tile);
          break;
        case TileType::kF16:
        case TileType::kBf16:
        case TileType::kF32:
          pack_plain(type, strip_rows, row_bytes, valid, index, k, tile);
          break;
      }
    }
  }
}

void unpack_tile_row(TileType type, const void* tiles, int64_t k, int64_t row, float* out) {
  const int64_t bytes = tile_bytes(type);
  const uint8_t* strip = static_cast<const uint8_t*>(tiles) + row / kTileRows * tiles_of(k) * bytes;
  const int in_strip = static_cast<int>(row % kTileRows);
  for (int64_t i = 0; i < k; ++i) {
    const uint8_t* tile = strip + i / kTileColumns * bytes;
    const int column = static_cast<int>(i % kTileColumns);
    const int lane = in_strip % 8 * 4 + column / 16;
    const int w = column % 16 / 4, h = column % 2;
    const int r = in_strip / 8 + 2 * (column % 4 / 2);
    uint16_t scale = 0, minimum = 0, half = 0;
    switch (type) {
      case TileType::kP4: {
        uint32_t word = 0;
        std::memcpy(&word, tile + p4_word(lane, w), 4);
        std::memcpy(&scale, tile + scale_byte(type, in_strip), 2);
        std::memcpy(&minimum, tile + scale_byte(type, in_strip) + 2, 2);
        const float code = static_cast<float>((word >> (4 * p4_nibble(r, h))) & 15);
        out[i] = half_to_float(scale) * code + half_to_float(minimum);
        break;
      }
      case TileType::kP8: {
        std::memcpy(&scale, tile + scale_byte(type, in_strip), 2);
        const int code = tile[p8_byte(lane, w, r, h)] - 128;
        out[i] = half_to_float(scale) * static_cast<float>(code);
        break;
      }
      case TileType::kF16:
      case TileType::kBf16:
        std::memcpy(&half, tile + half_byte(lane, w, r, h), 2);
        out[i] = type == TileType::kF16 ? half_to_float(half)
                                        : std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
        break;
      case TileType::kF32:
        std::memcpy(&out[i], tile + float_byte(lane, w, r, h), 4);
        break;
    }
  }
}

}  // namespace reckon::kernels::cuda
