// How a weight matrix lies in device memory for the one-weight-stream matmul kernels (gemv.h): cut
// into tiles of 16 weight rows × 64 columns of K, each a permutation into what one warp wants as
// the 16-row A operand of mma.m16n8k16. Plain C++, no CUDA: a loader packs on any thread.
//
//   device memory = strip 0 | strip 1 | ...          a strip is 16 weight rows (the last one is
//   strip         = tile 0 | tile 1 | ...            padded with zero rows)
//   tile          = codes of 16 × 64 weights, then the scales of its 16 rows (p4, p8 only)
//
// Strips and tiles follow each other without gaps, so that any run of tiles of a strip is one
// contiguous, 16-byte aligned copy. K is padded with zero weights to a multiple of 64.
//
// Inside a tile, lane l of a warp owns 32 weights: with g = l / 4 and t = l % 4, those of rows g
// and g + 8 at columns 16t ... 16t + 15. They are numbered by slot = 8w + 2r + h, where w (0 ... 3)
// is the mma that takes them, r the A register and h the half of that register:
//
//   row    = g + 8 * (r & 1)
//   column = 16t + 4w + 2 * (r >> 1) + h
//
// so the B operand of lane t is x[16t ... 16t + 15] in natural order. Bytes of a tile:
//
//   p4   512 B codes  [lane 32][w 4] uint32: slot (w, r, h) is nibble 2 * (r & 1) + (r >> 1) + 4h.
//                     Then  word & 0x000f000f        = r 0 \ as two half subnormals c * 2^-24,
//                          (word >> 8) & 0x000f000f  = r 1 /
//                           word & 0x00f000f0        = r 2 \ the same times 16 (the kernel divides
//                          (word >> 8) & 0x00f000f0  = r 3 / those columns of x by 16)
//         64 B scales [g 8] { half scale, half minimum of row g, then of row g + 8 }
//   p8  1024 B codes  [w / 2][lane 32][w % 2][r / 2] uint32 of codes + 128: slot (w, r, h) is byte
//                     (r & 1) + 2h, so word & 0x00ff00ff is r even, (word >> 8) & 0x00ff00ff r odd
//         32 B scales [g 8] { half scale of row g, of row g + 8 }
//   f16, bf16  2048 B [w 4][lane 32][r 4][h 2]
//   f32        4096 B [w 4][r / 2][lane 32][r & 1][h 2]
//
// Why subnormals: a nibble in the low bits of a half is exactly c * 2^-24, which the matrix units
// take at full rate, so unpacking is one mask a pair of weights, without the subtraction that the
// usual 1024 + c needs.
#pragma once

#include <cstdint>

namespace reckon::kernels::cuda {

enum class TileType : uint8_t { kP4, kP8, kF16, kBf16, kF32 };
inline constexpr int kTileTypeCount = 5;

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileColumns = 64;
inline constexpr int kTileSlots = 32;  // weights that one lane owns

// Bytes of one tile: 576, 1056, 2048, 2048, 4096. Always a multiple of 16.
constexpr int64_t tile_bytes(TileType type) {
  switch (type) {
    case TileType::kP4:
      return 576;
    case TileType::kP8:
      return 1056;
    case TileType::kF16:
    case TileType::kBf16:
      return 2048;
    case TileType::kF32:
      return 4096;
  }
  return 0;
}

// Strips of 16 rows, and tiles of a strip, of a matrix of n rows and k columns.
constexpr int64_t strips_of(int64_t n) {
  return (n + kTileRows - 1) / kTileRows;
}
constexpr int64_t tiles_of(int64_t k) {
  return (k + kTileColumns - 1) / kTileColumns;
}

// Bytes of the whole matrix in device memory (16-byte aligned address wanted).
constexpr int64_t tile_bytes(TileType type, int64_t n, int64_t k) {
  return strips_of(n) * tiles_of(k) * tile_bytes(type);
}

// Bytes of one row as pack_tiles() reads it: p4 and p8 are blocks of 64 weights (BlockP4: scale,
// minimum, 32 bytes of nibbles; BlockP8: scale, 64 codes), the last one padded; the others are
// plain.
constexpr int64_t packed_row_bytes(TileType type, int64_t k) {
  switch (type) {
    case TileType::kP4:
      return tiles_of(k) * 36;
    case TileType::kP8:
      return tiles_of(k) * 66;
    case TileType::kF16:
    case TileType::kBf16:
      return k * 2;
    case TileType::kF32:
      return k * 4;
  }
  return 0;
}

// Packs strips first_strip ... first_strip + strip_count - 1 of the matrix whose row 0 starts at
// `rows` (n rows of packed_row_bytes each, any alignment). `out` is where first_strip goes and gets
// strip_count * tiles_of(k) * tile_bytes(type) bytes, all written. Strips are independent: call it
// from several threads on different strips.
void pack_tiles(TileType type, const void* rows, int64_t n, int64_t k, int64_t first_strip,
                int64_t strip_count, void* out);

// The inverse for one row of a whole packed matrix: its k weights as float32, the codes already
// scaled. For tests, and for looking at what a device really holds.
void unpack_tile_row(TileType type, const void* tiles, int64_t k, int64_t row, float* out);

}  // namespace reckon::kernels::cuda
