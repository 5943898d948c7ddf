// The configuration of a dense decoder, read from a GGUF file's metadata or a config.json and
// checked: what comes out of here is safe to compute sizes with.
//
// A value that changes the arithmetic and that this version does not compute is an error that
// names the file and the key, never ignored: rope scaling, experts, quantised folders; and biases,
// sliding windows and activations that are not the family's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernel.h"
#include "models/weights.h"

namespace reckon::models {

enum class QkNorm : uint8_t { kNone, kPerHead };
enum class Head : uint8_t { kOwn, kTied };  // tied: the embedding is the head, too

enum class QkvBias : uint8_t { kNone, kAdded };
enum class MlpActivation : uint8_t { kSilu, kGeluTanh };
// kPost: norms after attention and MLP as well, before their sums.
enum class BlockNorms : uint8_t { kPre, kPreAndPost };

// What tells the dense families apart.
struct DenseFamily {
  const char* name = "";
  QkNorm qk_norm = QkNorm::kNone;
  kernels::RopePairing gguf_pairing = kernels::RopePairing::kHalf;  // folders always use halves
  QkvBias qkv_bias = QkvBias::kNone;
  MlpActivation activation = MlpActivation::kSilu;
  BlockNorms norms = BlockNorms::kPre;
  NormWeights norm_weights = NormWeights::kPlain;  // of folders; GGUF files have the sum
  // Keys that the family reads by itself, after read_dense_config().
  std::span<const std::string_view> own_gguf_keys = {};  // under "<architecture>."
  bool reads_own_attention = false;                      // a folder's windows and layer types
  bool tied_by_default = false;                          // a folder that does not say
};

// How one layer attends.
struct LayerAttention {
  double rope_base = 0;
  int64_t window = 0;  // positions that a query sees; 0: all
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
  kernels::RopePairing pairing = kernels::RopePairing::kHalf;
  QkNorm qk_norm = QkNorm::kNone;
  QkvBias qkv_bias = QkvBias::kNone;
  MlpActivation activation = MlpActivation::kSilu;
  BlockNorms norms = BlockNorms::kPre;
  NormWeights norm_weights = NormWeights::kPlain;  // of this checkpoint
  Head head = Head::kOwn;
  double rope_base = 0;                   // of every layer that does not say otherwise
  std::vector<LayerAttention> attention;  // one a layer
  float attention_scale = 0;              // of q . k
  float embedding_scale = 1;
};

[[nodiscard]] Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint,
                                                    const DenseFamily& family);

}  // namespace reckon::models
