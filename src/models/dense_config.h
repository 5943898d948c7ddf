// The configuration of a dense decoder, read from a GGUF file's metadata or a config.json and
// checked: what comes out of here is safe to compute sizes with.
//
// A value that changes the arithmetic and that this version does not compute is an error that
// names the file and the key, never ignored: rope scaling, biases, sliding windows, activations
// other than SiLU, experts, quantised folders.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernel.h"

namespace reckon::models {

enum class QkNorm : uint8_t { kNone, kPerHead };
enum class Head : uint8_t { kOwn, kTied };  // tied: the embedding is the head, too

// What tells the dense families apart.
struct DenseFamily {
  const char* name = "";
  QkNorm qk_norm = QkNorm::kNone;
  kernels::RopePairing gguf_pairing = kernels::RopePairing::kHalf;  // folders always use halves
};

struct DenseConfig {
  std::string family;
  std::string name;  // for people, may be empty
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t head_dim = 0;  // even
  int64_t inner = 0;     // width of the MLP
  int64_t vocabulary = 0;
  int64_t context_limit = 0;
  float epsilon = 0;  // of every RMSNorm
  double rope_base = 0;
  kernels::RopePairing pairing = kernels::RopePairing::kHalf;
  QkNorm qk_norm = QkNorm::kNone;
  Head head = Head::kOwn;
};

[[nodiscard]] Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint,
                                                    const DenseFamily& family);

}  // namespace reckon::models
